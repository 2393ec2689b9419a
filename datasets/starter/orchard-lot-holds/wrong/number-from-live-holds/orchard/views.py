"""Text views of a stock."""


def stock_list(stock):
    """A line for each sku on hand."""
    return [_stock_line(stock, sku) for sku in stock.skus()]


def _stock_line(stock, sku):
    on_hand = stock.on_hand(sku)
    held = on_hand - stock.free(sku)
    return f"{sku}: {on_hand} on hand" + (f", {held} held" if held else "")


def hold_list(stock):
    """A line for each active hold."""
    return [_hold_line(hold) for hold in stock.holds()]


def _hold_line(hold):
    lots = ", ".join(f"{qty} of {lot_id}" for lot_id, qty in hold.picks)
    return f"{hold.id} until {hold.expires}: {hold.qty} {hold.sku} ({lots})"
