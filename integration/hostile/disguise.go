//go:build unix

package main

import (
	"encoding/json"
	"net/url"
	"strings"
)

// disguise is a way to write a session's id that a parser may take for the
// session, and a check for another one.
type disguise struct {
	name string
	// text is the id as it is meant; it is encoded for where it goes.
	text func(victim, own string) string
	// path, query and body, if set, are what is written as it is: a segment, the
	// value of a parameter, and a JSON value.
	path, query, body func(victim, own string) string
}

// inPath is the disguised id as a segment of a path.
func (d disguise) inPath(victim, own string) string {
	if d.path != nil {
		return d.path(victim, own)
	}
	return url.PathEscape(d.plain(victim, own))
}

// inQuery is the disguised id as the value of a parameter.
func (d disguise) inQuery(victim, own string) string {
	if d.query != nil {
		return d.query(victim, own)
	}
	return url.QueryEscape(d.plain(victim, own))
}

// inBody is the disguised id as a JSON value.
func (d disguise) inBody(victim, own string) string {
	if d.body != nil {
		return d.body(victim, own)
	}
	raw, _ := json.Marshal(d.plain(victim, own)) // a string
	return string(raw)
}

func (d disguise) plain(victim, own string) string {
	if d.text == nil {
		return victim
	}
	return d.text(victim, own)
}

// disguises are all that are tried, on each route and in each place of an id.
var disguises = []disguise{
	{name: "as it is"},
	{name: "upper case", text: func(v, _ string) string { return strings.ToUpper(v) }},
	{name: "space behind", text: func(v, _ string) string { return v + " " }},
	{name: "space before", text: func(v, _ string) string { return " " + v }},
	{name: "tab behind", text: func(v, _ string) string { return v + "\t" }},
	{name: "line end behind", text: func(v, _ string) string { return v + "\n" }},
	{name: "carriage return behind", text: func(v, _ string) string { return v + "\r" }},
	{name: "zero byte behind", text: func(v, _ string) string { return v + "\x00" }},
	{name: "own id and a zero byte", text: func(v, own string) string { return own + "\x00" + v }},
	{name: "dot behind", text: func(v, _ string) string { return v + "." }},
	{name: "slash behind", text: func(v, _ string) string { return v + "/" }},
	{name: "slash before", text: func(v, _ string) string { return "/" + v }},
	{name: "dot segment", text: func(v, _ string) string { return "./" + v }},
	{name: "up from one's own", text: func(v, own string) string { return own + "/../" + v }},
	{name: "up, backslashes", text: func(v, own string) string { return own + `\..\` + v }},
	{name: "escaped twice", text: func(v, _ string) string { return "%67" + v[1:] }},
	{name: "glob star", text: func(v, _ string) string { return v[:2] + "*" }},
	{name: "glob question mark", text: func(v, _ string) string { return v[:len(v)-1] + "?" }},
	{name: "glob class", text: func(v, _ string) string { return "[" + v[:1] + "]" + v[1:] }},
	{name: "glob choice", text: func(v, own string) string { return "{" + v + "," + own + "}" }},
	{name: "everything", text: func(string, string) string { return "*" }},
	{name: "NATS wildcard", text: func(string, string) string { return ">" }},
	{name: "NATS subject", text: func(v, _ string) string { return "helix.log.0." + v }},
	{name: "NATS tokens", text: func(v, own string) string { return own + "." + v }},
	{name: "full-width letter", text: func(v, _ string) string { return "\uff47" + v[1:] }},
	{name: "look-alike letter", text: func(v, _ string) string { return strings.Replace(v, "o", "\u043e", 1) }},
	{name: "zero-width space", text: func(v, _ string) string { return v[:1] + "\u200b" + v[1:] }},
	{name: "right to left", text: func(v, _ string) string { return "\u202e" + v }},
	{name: "byte order mark", text: func(v, _ string) string { return "\ufeff" + v }},
	{name: "bytes that are no UTF-8", text: func(v, _ string) string { return v + "\xff" }},
	{name: "list with a comma", text: func(v, own string) string { return own + "," + v }},
	{name: "list with a space", text: func(v, own string) string { return own + " " + v }},
	{name: "another parameter", text: func(v, own string) string { return own + "&sessionId=" + v }},
	{name: "quotes", text: func(v, _ string) string { return `"` + v + `"` }},
	{name: "own id, quotes, SQL", text: func(v, own string) string { return own + `' OR session='` + v }},
	{name: "own prefix, long", text: func(v, own string) string { return own + strings.Repeat("a", 400) + "/../" + v }},
	{
		name:  "all of it escaped",
		path:  func(v, _ string) string { return escapeAll(v) },
		query: func(v, _ string) string { return escapeAll(v) },
		body:  func(v, _ string) string { return `"\u00` + hex(v[0]) + v[1:] + `"` },
	},
	{
		name:  "named twice, own first",
		path:  func(v, own string) string { return own + "/../" + v },
		query: func(v, own string) string { return own + "&sessionId=" + v + "&id=" + v },
		body:  func(v, own string) string { return `"` + own + `","sessionId":"` + v + `","id":"` + v + `"` },
	},
	{
		name:  "named twice, own last",
		path:  func(v, own string) string { return v + "/../" + own },
		query: func(v, own string) string { return v + "&sessionId=" + own + "&id=" + own },
		body:  func(v, own string) string { return `"` + v + `","sessionId":"` + own + `","id":"` + own + `"` },
	},
	{
		name:  "named twice, other letters",
		path:  func(v, own string) string { return own + ";" + v },
		query: func(v, own string) string { return own + "&SESSIONID=" + v + "&ID=" + v },
		body:  func(v, own string) string { return `"` + own + `","SessionID":"` + v + `","Id":"` + v + `"` },
	},
	{
		name:  "in a list",
		path:  func(v, own string) string { return own + "%2f..%2f" + v },
		query: func(v, own string) string { return own + "&sessionId[]=" + v },
		body:  func(v, own string) string { return `["` + own + `","` + v + `"]` },
	},
}

func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("%" + hex(s[i]))
	}
	return b.String()
}

func hex(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}
