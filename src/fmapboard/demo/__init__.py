"""The demonstration: a small network learns real photographs while fmapboard watches."""
