package config

import (
	"encoding/json"
	"strings"
)

// json returns the node as JSON. Numbers keep their digits, mappings their
// order.
func (n *node) json() json.RawMessage {
	text := "null"
	switch n.kind {
	case kindBool, kindNumber:
		text = n.text
	case kindString:
		text = quoted(n.text)
	case kindMapping:
		members := make([]string, len(n.pairs))
		for i, p := range n.pairs {
			members[i] = quoted(p.key) + ":" + string(p.value.json())
		}
		text = "{" + strings.Join(members, ",") + "}"
	case kindSequence:
		items := make([]string, len(n.items))
		for i, item := range n.items {
			items[i] = string(item.json())
		}
		text = "[" + strings.Join(items, ",") + "]"
	}
	return json.RawMessage(text)
}

func quoted(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(data)
}
