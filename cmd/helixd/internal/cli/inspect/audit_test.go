package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Who did what, from which request: truncated records too, and nothing that nobody
// asked for.
func TestAudit(t *testing.T) {
	const by = `"by":{"token":"desk","user":"ada","address":"10.0.0.7","requestId":"r1"}`
	records := `{"sequence":3,"time":"2026-01-02T03:04:05Z","kind":"fact","type":"run_requested","agent":"s","data":{"type":"run_requested","runId":"run-1","mode":"start","sessionId":"s","timestamp":1767323045000,` + by + `}}
{"sequence":4,"time":"2026-01-02T03:04:05Z","kind":"fact","type":"run_claimed","agent":"s","data":{"type":"run_claimed","runId":"run-1","node":"n","attempt":1,"sessionId":"s","timestamp":1767323045000}}
{"sequence":9,"time":"2026-01-02T03:04:06Z","kind":"fact","type":"result_submitted","agent":"s","data":{"type":"result_submitted","toolCallId":"c1","kind":"approval-response","approved":true,"sessionId":"s","timestamp":1767323046000,"by":{"subject":"u-7","address":"10.0.0.8"}}}
{"sequence":12,"time":"2026-01-02T03:04:07Z","kind":"fact","type":"interrupt_requested","agent":"s","data":{"type":"interrupt_requested","runId":"run-1","kind":"abort","sessionId":"s","timestamp":1767323047000,"by":{"address":"10.0.0.8"}}}
{"sequence":13,"time":"2026-01-02T03:04:08Z","kind":"fact","type":"session_imported","agent":"s","data":{"type":"session_imported","records":12,"sessionId":"s","timestamp":1767323048000,` + by + `}}
{"sequence":14,"time":"2026-01-02T03:04:08Z","kind":"fact","type":"session_imported","agent":"s","data":{"type":"session_imported","records":1,"backup":1767323045000,"sessionId":"s","timestamp":1767323048000,"by":{"subject":"os:ada"}}}
{"sequence":15,"time":"2026-01-02T03:04:09Z","kind":"fact","type":"metadata_replaced","agent":"s","data":{"type":"metadata_replaced","metadata":{"k":"v"},"sessionId":"s","timestamp":1767323049000,` + by + `}}
{"sequence":16,"time":"2026-01-02T03:04:09Z","kind":"fact","type":"message_added","agent":"s","data":{"type":"message_added","role":"system","content":"Be brief.","sessionId":"s","timestamp":1767323049000,` + by + `}}
{"sequence":17,"time":"2026-01-02T03:04:09Z","kind":"fact","type":"user_message","agent":"s","data":{"type":"user_message","content":"hi","sessionId":"s","timestamp":1767323049000,` + by + `}}
{"sequence":18,"time":"2026-01-02T03:04:09Z","kind":"fact","type":"user_message","agent":"s","run":"run-2","data":{"type":"user_message","content":"hi","sessionId":"s","timestamp":1767323049000,` + by + `}}
{"sequence":19,"time":"2026-01-02T03:04:09Z","kind":"fact","type":"message_added","agent":"s","run":"run-2","data":{"type":"message_added","role":"system","content":"Be brief.","sessionId":"s","timestamp":1767323049000,` + by + `}}
{"sequence":20,"time":"2026-01-02T03:04:10Z","kind":"fact","type":"run_deleted","agent":"s","run":"run-1","data":{"type":"run_deleted","runId":"run-1","sessionId":"s","timestamp":1767323050000,` + by + `}}
`
	var asked []string
	out, err := told(t, answering(&asked, map[string]string{"/sessions/s/records": records}), "audit", "s")
	require.NoError(t, err)
	require.Equal(t, []string{"/sessions/s/records?dead=1&kind=fact"}, asked)
	const restored = "1 records of the backup of 2026-01-02T03:04:05Z"
	require.Equal(t, `TIME                  SEQUENCE  ACTION       ABOUT                                            CALLER  USER  ADDRESS   REQUEST
2026-01-02T03:04:05Z  3         run (start)  run-1                                            desk    ada   10.0.0.7  r1
2026-01-02T03:04:06Z  9         approve      c1                                               u-7     -     10.0.0.8  -
2026-01-02T03:04:07Z  12        abort        run-1                                            -       -     10.0.0.8  -
2026-01-02T03:04:08Z  13        import       12 records                                       desk    ada   10.0.0.7  r1
2026-01-02T03:04:08Z  14        restore      `+restored+`  os:ada  -     -         -
2026-01-02T03:04:09Z  15        metadata     -                                                desk    ada   10.0.0.7  r1
2026-01-02T03:04:09Z  16        add message  system                                           desk    ada   10.0.0.7  r1
2026-01-02T03:04:09Z  17        add message  user                                             desk    ada   10.0.0.7  r1
2026-01-02T03:04:10Z  20        delete run   run-1                                            desk    ada   10.0.0.7  r1
`, out)
	out, err = told(t, answering(&asked, map[string]string{"/sessions/s/records": records}), "audit", "s", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"items":[
		{"sequence":3,"time":"2026-01-02T03:04:05Z","action":"run (start)","about":"run-1",`+by+`},
		{"sequence":9,"time":"2026-01-02T03:04:06Z","action":"approve","about":"c1","by":{"subject":"u-7","address":"10.0.0.8"}},
		{"sequence":12,"time":"2026-01-02T03:04:07Z","action":"abort","about":"run-1","by":{"address":"10.0.0.8"}},
		{"sequence":13,"time":"2026-01-02T03:04:08Z","action":"import","about":"12 records",`+by+`},
		{"sequence":14,"time":"2026-01-02T03:04:08Z","action":"restore","about":"`+restored+`","by":{"subject":"os:ada"}},
		{"sequence":15,"time":"2026-01-02T03:04:09Z","action":"metadata",`+by+`},
		{"sequence":16,"time":"2026-01-02T03:04:09Z","action":"add message","about":"system",`+by+`},
		{"sequence":17,"time":"2026-01-02T03:04:09Z","action":"add message","about":"user",`+by+`},
		{"sequence":20,"time":"2026-01-02T03:04:10Z","action":"delete run","about":"run-1",`+by+`}]}`, out)
}
