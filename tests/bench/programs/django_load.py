"""django_load.py REQUESTS: a service of django that answers that many requests, one after the other: routes, middleware, the ORM on
SQLite, a template, a form, JSON."""
import sys

import django
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["testserver"], ROOT_URLCONF=__name__, SECRET_KEY="bench", USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
django.setup()

from django import forms  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.template import Context, Template  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import path  # noqa: E402


class Item(models.Model):
    name = models.CharField(max_length=40)
    price = models.IntegerField()

    class Meta:
        app_label = "bench"


class Order(forms.Form):
    name = forms.CharField(max_length=40)
    count = forms.IntegerField(min_value=1)


TEMPLATE = Template("<ul>{% for item in items %}<li>{{ item.name|upper }}: {{ item.price }}</li>{% endfor %}</ul>")


def index(request):
    return HttpResponse(TEMPLATE.render(Context({"items": Item.objects.order_by("-price")[:20]})))


def item(request, number):
    found = Item.objects.filter(pk=number).first()
    return JsonResponse({"name": found.name, "price": found.price} if found else {}, status=200 if found else 404)


def order(request):
    form = Order(request.POST)
    return JsonResponse({"total": 3 * form.cleaned_data["count"]} if form.is_valid() else form.errors, status=200 if form.is_valid() else 400)


urlpatterns = [path("", index), path("items/<int:number>", item), path("orders", order)]


def main(requests):
    client = Client()
    with connection.schema_editor() as editor:
        editor.create_model(Item)
    Item.objects.bulk_create(Item(name="item %d" % number, price=3 * number) for number in range(100))
    for number in range(requests):
        assert client.get("/").status_code == 200
        assert client.get("/items/%d" % (1 + number % 125)).status_code == (200 if number % 125 < 100 else 404)
        assert client.post("/orders", {"name": "a", "count": number % 5}).status_code == (200 if number % 5 else 400)


main(int(sys.argv[1]))
