#!/bin/sh
# An agent that wants one large refund, and is done after it.
case $(cat) in
*'"index":1'*) echo '{"kind":"complete","result":"The customer has the money."}' ;;
*) echo '{"kind":"tool_call","tool":"refund","args":{"order_id":"o-9","amount":75},"reason":"the parcel was lost"}' ;;
esac
