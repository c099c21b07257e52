"""The spectrum of the loss's second derivatives in small residual networks, by the statistics that batch norm takes."""
