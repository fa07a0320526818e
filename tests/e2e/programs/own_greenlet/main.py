"""Switches to and fro, as far as its greenlet module reports. Prints how often."""
import greenlet

here, there = object(), object()
for _ in range(100):
    greenlet.switch(here, there)
    greenlet.switch(there, here)
print(200)
