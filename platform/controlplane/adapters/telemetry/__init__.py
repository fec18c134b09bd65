"""Where figures of cards are read: exporters themselves, or a Prometheus that reads them already."""
