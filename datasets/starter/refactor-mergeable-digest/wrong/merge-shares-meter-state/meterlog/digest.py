from meterlog.report import report
from meterlog.tally import Tally


def digest(lines):
    """Digest a meter log.

    A line is "METER VALUE"; "#" starts a comment line, and "= METER" is a reset mark: the meter was exchanged,
    so its next reading must not be compared with the one before.
    """
    tally = Tally()
    for line in lines:
        tally.feed(line)
    return report(tally)
