package provider

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Decode decodes what a provider sends. A member of another type than v's is left out, as if
// it were missing: compatible servers differ in what they send beside the answer.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other {
		return nil
	}
	return err
}

// Count is a number that some servers send as a text or with a fraction; anything else is 0.
type Count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(data []byte) error {
	if n, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64); err == nil && math.Abs(n) < 1<<53 {
		*c = Count(n)
	}
	return nil
}

// Text is a text, which some servers send as the JSON that it should hold: then it is that JSON, as
// they sent it.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*t = ""
		return nil
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	*t = Text(text)
	return nil
}
