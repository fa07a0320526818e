"""pillow: an image drawn, scaled, filtered, compressed and read again; scale: hundreds of pixels a side."""


def main(scale):
    import io

    from PIL import Image, ImageDraw, ImageFilter

    side = scale * 100
    image = Image.new("RGB", (side, side), "white")
    draw = ImageDraw.Draw(image)
    for at in range(0, side, 20):
        draw.ellipse((at, at // 2, at + 200, at // 2 + 100), fill=(at % 255, 20, 200))
    small = image.resize((side // 3, side // 3), Image.LANCZOS).filter(ImageFilter.GaussianBlur(3))
    file = io.BytesIO()
    image.save(file, "PNG")
    small.save(io.BytesIO(), "JPEG")
    with Image.open(io.BytesIO(file.getvalue())) as again:
        assert again.rotate(30).size == (side, side)
