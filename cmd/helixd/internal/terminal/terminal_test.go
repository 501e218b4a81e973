package terminal

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a terminal shows of JSON is the same JSON, however it is cut.
func TestJSONWriter(t *testing.T) {
	given := "{\"a\":\"x\u009b\u202e\x7f\U000e0001 é👩‍🚀 \\u0007\"}\n"
	for size := 1; size <= len(given); size++ {
		var out bytes.Buffer
		w := &jsonWriter{w: &out}
		for rest := []byte(given); len(rest) > 0; {
			n := min(size, len(rest))
			_, err := w.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.Equal(t, `{"a":"x\u009b\u202e\u007f\udb40\udc01 é👩‍🚀 \u0007"}`+"\n", out.String())
		require.JSONEq(t, given, out.String())
	}
}

func TestColors(t *testing.T) {
	var out io.Writer = new(bytes.Buffer)
	require.Equal(t, "x", ColorFlags{Color: "auto"}.Paint(out).Text(Red, "x"), "no terminal")
	require.Equal(t, "\x1b[31mx\x1b[0m", ColorFlags{Color: "always"}.Paint(out).Text(Red, "x"))
	require.Equal(t, "x", ColorFlags{Color: "never"}.Paint(out).Text(Red, "x"))
	device, err := os.OpenFile("/dev/zero", os.O_WRONLY, 0) // a character device, as terminals are
	require.NoError(t, err)
	defer device.Close()
	out = device
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	require.True(t, bool(ColorFlags{Color: "auto"}.Paint(out)))
	t.Setenv("NO_COLOR", "1")
	require.False(t, bool(ColorFlags{Color: "auto"}.Paint(out)))
	require.True(t, bool(ColorFlags{Color: "always"}.Paint(out)), "who asks for colours gets them")
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	require.False(t, bool(ColorFlags{Color: "auto"}.Paint(out)))
}
