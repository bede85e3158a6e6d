"""What schemathesis does not know by itself: views are bytes as they are."""

import schemathesis


@schemathesis.serializer("application/vnd.dpsw.view")
def view(context, value):
    return value if isinstance(value, bytes) else str(value).encode()
