package config

import (
	"encoding/json"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/eventlog"
)

// name is what agents and tools may be called.
var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

const nameRule = "the name must match [a-zA-Z0-9_-]{1,64}"

// Validate checks the values of a configuration that was changed after Load.
// The error is nil or names every problem, one a line.
func (c *Config) Validate() error { return joined(c.check()) }

// checker collects what is wrong with a configuration's values.
type checker struct {
	config   *Config
	problems []problem
}

func (c *Config) check() []problem {
	k := &checker{config: c}
	k.checkServer()
	k.checkNATS()
	k.checkServerTLS()
	k.checkAuth()
	k.checkAgents()
	k.checkMemory()
	k.checkOperations()
	k.checkLimits()
	k.checkWorkspaces()
	return k.problems
}

// require reports a problem unless ok.
func (k *checker) require(ok bool, path, text string) {
	if !ok {
		k.problems = append(k.problems, problem{at: k.config.originOf(path), path: path, text: text})
	}
}

// needed reports that something is missing unless ok.
func (k *checker) needed(ok bool, path, text string) {
	if !ok {
		k.problems = append(k.problems, problem{at: k.config.originOf(path), path: path, text: text, missing: true})
	}
}

func (k *checker) checkServer() {
	c := k.config
	k.require(isHostPort(c.Listen), "listen", "must be host:port")
	k.require(c.DataDir != "", "dataDir", "must not be empty")
	_, ok := parseDurability(c.Durability)
	k.require(ok, "durability", "must be fsync or interval=<duration greater than 0>")
	k.require(c.DrainTimeout >= 0, "drainTimeout", "must not be negative")
	k.require(c.ServiceName != "", "serviceName", "must not be empty")
	k.require(c.InterruptObservationDeadline > 0, "interruptObservationDeadline", "must be greater than 0")
	k.require(c.ModelRetryDelay > 0, "modelRetryDelay", "must be greater than 0")
	k.require(c.Heartbeat > 0, "heartbeat", "must be greater than 0")
	k.checkSchema(c.SubmitToolResultSchema, "submitToolResultSchema")
	k.require(c.NATS.URL == "" || !c.isSet("durability"), "durability", "is for the embedded server: with nats.url the deployment's operator decides")
	k.checkChat()
	k.checkAgent("chat.defaultAgent", c.Chat.DefaultAgent)
	k.checkAgent("protocols.responses.defaultAgent", c.Protocols.Responses.DefaultAgent)
}

// checkAgent reports an agent that there is not.
func (k *checker) checkAgent(path, name string) {
	c := k.config
	if name == "" || c.file == "" && len(c.Agents) == 0 {
		return
	}
	_, ok := c.Agents[name]
	known := "there are none"
	if len(c.Agents) > 0 {
		known = strings.Join(slices.Sorted(maps.Keys(c.Agents)), ", ")
	}
	k.require(ok, path, "must be one of the agents: "+known)
}

func (k *checker) checkChat() {
	c := k.config.Chat
	k.require(isObject(c.StartMetadata), "chat.startMetadata", "must be a mapping")
	k.require(isObject(c.FinishMetadata), "chat.finishMetadata", "must be a mapping")
	k.require(strings.Contains(c.MessageID, messageIndex), "chat.messageId", "must contain {index}, or messages would share an id")
	for i, typ := range c.HideChunks {
		k.require(slices.Contains(eventlog.ChunkTypes(), typ), index("chat.hideChunks", i), "must be a type of chunks")
	}
}

// isHostPort accepts an empty host, which means every interface.
func isHostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func isHTTPURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isObject reports whether free JSON is absent or an object.
func isObject(raw json.RawMessage) bool {
	return raw == nil || strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
}

// checkSchema refuses what is no JSON Schema.
func (k *checker) checkSchema(raw json.RawMessage, path string) {
	if raw == nil {
		return
	}
	var schema jsonschema.Schema
	err := json.Unmarshal(raw, &schema)
	if err == nil {
		_, err = schema.Resolve(nil)
	}
	switch {
	case !isObject(raw):
		k.require(false, path, "must be a JSON Schema, a mapping")
	case err != nil:
		k.require(false, path, "must be a JSON Schema: "+err.Error())
	}
}
