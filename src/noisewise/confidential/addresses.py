"""What an address of a server may say: where, who, and which table; never a password."""

from urllib.parse import parse_qsl, urlsplit

_SECRETS = ("password", "passwd", "token", "secret", "sslpassword")


def holds_secret(address: str) -> bool:
    """Whether an address ("scheme://…") holds a password or a token, which files, logs and ledgers would keep."""
    if "://" not in address:
        return False
    try:
        parts = urlsplit(address)
    except ValueError:  # brackets that are no address of a computer: nothing that a server would take
        return False
    settings = [setting.partition("=")[0] for setting in parts.path.split(";")]
    settings += [key for key, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return parts.password is not None or any(name.strip("/").lower() in _SECRETS for name in settings)


def split_table(address: str) -> tuple[str, str]:
    """The server's part of an address, and the table after "::", if one is named there."""
    server, mark, table = address.rpartition("::")
    if not mark or "]" in table:  # the two colons of an IPv6 address
        return address, ""
    return server, table
