"""Callbacks for training frameworks; each module needs its framework, and imports it when used."""
