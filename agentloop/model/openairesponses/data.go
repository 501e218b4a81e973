package openairesponses

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// providerName says in the data of a part whose it is.
const providerName = "openai-responses"

// partData is what is kept with a part: what the API wants back beside the
// text, or in place of it.
type partData struct {
	Provider string `json:"provider"`
	// ItemID is the id of a reasoning item or of a generated image.
	ItemID string `json:"itemId,omitempty"`
	// Encrypted is the reasoning itself. The summary's parts are the parts of
	// reasoning before, up to and with this one.
	Encrypted string `json:"encrypted,omitempty"`
	Phase     string `json:"phase,omitempty"` // of a text: commentary or final_answer
}

func (d partData) encode() json.RawMessage {
	d.Provider = providerName
	raw, _ := json.Marshal(d)
	return raw
}

// dataOf is the data of a part; it is empty if there is none of this provider.
func dataOf(p fact.TurnPart) partData {
	var d partData
	if p.ProviderData == nil || json.Unmarshal(p.ProviderData, &d) != nil || d.Provider != providerName {
		return partData{}
	}
	return d
}
