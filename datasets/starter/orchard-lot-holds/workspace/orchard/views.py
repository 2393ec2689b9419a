"""Text views of a stock."""


def stock_list(stock):
    """A line for each sku on hand."""
    return [f"{sku}: {stock.on_hand(sku)} on hand" for sku in stock.skus()]
