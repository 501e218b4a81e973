//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// Agents.
const (
	agentWorker  = "worker"  // thinks, calls a tool, asks for an approval and for a client's tool, speaks
	agentSpeaker = "speaker" // speaks
)

// piece is the time between two pieces of what a model says: what keeps the load
// to what two cores can sync to disk. spoken is all that speaker says.
const (
	piece  = 1200 * time.Millisecond
	spoken = "Here is what I have to say, word by word, and not a single one of them twice."
)

// tool is the HTTP tool that agents call.
func tool(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // whatever it asks
	_, _ = io.WriteString(w, `{"result":{"sky":"grey"},"patches":[{"op":"add","path":"/looked","value":true}]}`)
}

// agents is the agents' part of the configuration; tool is the tool's URL.
func agents(tool string) string {
	return fmt.Sprintf(`
agents:
  worker:
    model:
      provider: scripted
      name: slow
      scriptDelay: %[2]s
      script:
        - reasoning: I think about it, word by word, and look at a place.
          toolCalls:
            - {id: l1, name: look, arguments: {city: Paris}}
        - text: Now I want to go there, if I may.
          toolCalls:
            - {id: p1, name: go, arguments: {city: Paris}}
            - {id: c1, name: ask, arguments: {}}
        - text: I was there, and this is all that there is to be said about it.
    tools:
      look:
        inputSchema: {type: object, properties: {city: {type: string}}, required: [city]}
        http: {url: %[1]q}
      go:
        inputSchema: {type: object, properties: {city: {type: string}}, required: [city]}
        http: {url: %[1]q}
        requireApproval: true
      ask: {client: true}
  speaker:
    model: {provider: scripted, name: slow, scriptDelay: %[2]s, script: [{text: %[3]q}]}
`, tool, piece, spoken)
}
