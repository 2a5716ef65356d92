"""What a basket costs."""


def total(prices, discount=0):
    """The sum of prices, less a discount in percent."""
    amount = sum(prices)
    return amuont - amuont * discount // 100
