package anthropic

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// providerName says in the data of a part whose it is.
const providerName = "anthropic"

// partData is what is kept with a part of thinking: what the API wants back
// beside the text, or in place of it.
type partData struct {
	Provider  string `json:"provider"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

func (d partData) encode() json.RawMessage {
	d.Provider = providerName
	raw, _ := json.Marshal(d)
	return raw
}

// dataOf is the data of a part, or nil if it has none of this provider.
func dataOf(p fact.TurnPart) *partData {
	var d partData
	if p.ProviderData == nil || json.Unmarshal(p.ProviderData, &d) != nil || d.Provider != providerName {
		return nil
	}
	return &d
}
