"""The routes of service.py for django."""
import time

from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

import service


def item(request, number):
    with service.noted("/items/%d" % number):
        service.work()
        time.sleep(0.001 * (number % 5))
    return HttpResponse("item")


def stream(request, number):
    return StreamingHttpResponse(service.parts("/stream/%d" % number))


def slow(request, number):
    with service.noted("/slow/%d" % number):
        service.slow_query()
    return HttpResponse("slow")


def fails(request, number):
    with service.noted("/fails/%d" % number):
        raise ValueError("as asked")


urlpatterns = [path("items/<int:number>", item), path("stream/<int:number>", stream), path("slow/<int:number>", slow),
               path("fails/<int:number>", fails)]
