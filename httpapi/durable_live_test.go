package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A reader with long polls that continues at the offset of each answer has each byte once, and the
// end.
func TestDurablePollIsCutAtEveryAnswer(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	a.create("polled", plain, "first\n")
	go func() {
		for i := range 20 {
			a.send("POST", "polled", fmt.Sprintf("%d\n", i), "Content-Type", plain)
		}
		a.send("POST", "polled", "last", "Content-Type", plain, "Stream-Closed", "true")
	}()
	want := "first\n"
	for i := range 20 {
		want += fmt.Sprintf("%d\n", i)
	}
	got, from := "", "-1"
	for closed := false; !closed; {
		answer := a.send("GET", "polled?live=long-poll&offset="+from, "")
		require.Contains(t, []int{200, 204}, answer.status)
		got += answer.body
		from, closed = answer.next(), answer.header.Get("Stream-Closed") == "true"
	}
	require.Equal(t, want+"last", got)
}

// Events have whole characters of text, wherever appends divide them and wherever a reader is cut
// off. What remains half at the end of a closed stream is sent as it is.
func TestDurableEventsHaveWholeCharacters(t *testing.T) {
	t.Parallel()
	a := newDurableAPI(t)
	const written = "a€é😀é"
	a.create("divided", plain, "")
	appendAll := func(text string) {
		for i := range len(text) {
			require.Equal(t, 204, a.send("POST", "divided", text[i:i+1], "Content-Type", plain).status)
		}
	}
	read := func(want string) (from string) {
		got, from := "", "-1"
		for got != want {
			data, last := a.frames("divided?live=sse&offset="+from, func(data string, _ map[string]any) bool { return data != "" })
			require.True(t, utf8.ValidString(data), "%q", data)
			require.NotEmpty(t, data)
			got += data
			require.True(t, strings.HasPrefix(want, got), "%q", got)
			from = last["streamNextOffset"].(string)
		}
		return from
	}
	appendAll(written)
	read(written) // each reader of what is there begins within the log
	live := make(chan string)
	for range 2 {
		go func() {
			data, _ := a.frames("divided?live=sse&offset=-1", func(data string, last map[string]any) bool {
				if !utf8.ValidString(data) {
					return true
				}
				return strings.HasSuffix(data, "é!")
			})
			live <- data
		}()
	}
	appendAll(written + "!")
	for range 2 {
		require.Equal(t, written+written+"!", <-live)
	}
	half := read(written + written + "!")
	require.Equal(t, 204, a.send("POST", "divided", "z\xe2\x82", "Content-Type", plain).status)
	data, last := a.frames("divided?live=sse&offset="+half, func(data string, _ map[string]any) bool { return data != "" })
	require.Equal(t, "z", data)
	require.Equal(t, true, last["upToDate"])
	require.Equal(t, "\xe2\x82", a.send("GET", "divided?offset="+last["streamNextOffset"].(string), "").body)
	a.create("fork", plain, "\xac", "Stream-Forked-From", "/v1/stream/divided")
	data, _ = a.frames("fork?live=sse&offset="+half, func(data string, _ map[string]any) bool { return len(data) > 1 })
	require.Equal(t, "z€", data)
	require.Equal(t, 204, a.send("POST", "divided", "", "Stream-Closed", "true").status)
	data, last = a.frames("divided?live=sse&offset="+last["streamNextOffset"].(string), func(_ string, last map[string]any) bool { return last["streamClosed"] == true })
	require.Equal(t, "\xe2\x82", data)
	require.Equal(t, a.send("HEAD", "divided", "").next(), last["streamNextOffset"])
}
