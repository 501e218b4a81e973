package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// The ids of the checks of what agents depend on.
const (
	checkModels       = "models"
	checkTools        = "tools" // over HTTP
	checkMCP          = "mcp"
	checkRemoteAgents = "remoteAgents"
	checkEmbedder     = "embedder"
)

const (
	// upstreamTimeout is how long a server has to answer.
	upstreamTimeout = 5 * time.Second
	// upstreamsAtOnce bounds how many servers are asked at a time.
	upstreamsAtOnce = 16
)

// dependency is a server, or a command, that agents need.
type dependency struct {
	check string
	key   string // the setting that names it
	url   string
	run   string // a command, instead of a server
	model string // its name

	// asks is a request that changes nothing and needs the credentials in header; empty: the server's
	// root is asked without any.
	asks   string
	header http.Header
	secret string // the setting with the credentials
}

// dependencies returns what the configured agents need, by setting.
func dependencies(c *config.Config) (all []dependency) {
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a, at := c.Agents[name], "agents."+name
		if address := modelURL(a.Model); address != "" {
			d := dependency{check: checkModels, key: at + ".model.baseURL", url: address, model: a.Model.Name}
			d.listsModels(a.Model.Provider, a.Model.APIKey.Reveal(), revealed(a.Model.Headers), at+".model.apiKey")
			all = append(all, d)
		}
		for _, tool := range slices.Sorted(maps.Keys(a.Tools)) {
			if h := a.Tools[tool].HTTP; h != nil {
				all = append(all, dependency{check: checkTools, key: at + ".tools." + tool + ".http.url", url: h.URL})
			}
		}
		for i, m := range a.MCP {
			d := dependency{check: checkMCP, key: fmt.Sprintf("%s.mcp[%d].url", at, i), url: m.URL}
			if len(m.Command) > 0 {
				d.key, d.run = fmt.Sprintf("%s.mcp[%d].command", at, i), m.Command[0]
			}
			all = append(all, d)
		}
		for _, remote := range slices.Sorted(maps.Keys(a.RemoteAgents)) {
			r := a.RemoteAgents[remote]
			d := dependency{check: checkRemoteAgents, key: at + ".remoteAgents." + remote + ".url", url: r.URL}
			if len(r.Headers) > 0 {
				d.asks, d.header, d.secret = below(r.URL, "status")+"?sessionId=helixd-doctor", revealed(r.Headers), at+".remoteAgents."+remote+".headers"
			}
			all = append(all, d)
		}
	}
	if e := c.Memory.Embedder; e.Provider == config.EmbedderOpenAI {
		d := dependency{check: checkEmbedder, key: "memory.embedder.baseURL", url: cmp.Or(e.BaseURL, openAIAPI), model: e.Name}
		d.listsModels(config.ProviderOpenAI, e.APIKey.Reveal(), http.Header{}, "memory.embedder.apiKey")
		all = append(all, d)
	}
	return all
}

// listsModels has the provider asked for its models, with a key that it may not know.
func (d *dependency) listsModels(provider config.Provider, key string, header http.Header, setting string) {
	if key == "" {
		return
	}
	d.asks, d.header, d.secret = below(d.url, "models"), header, setting
	if provider == config.ProviderAnthropic {
		d.asks = below(d.url, "v1/models")
		header.Set("X-Api-Key", key)
		header.Set("Anthropic-Version", "2023-06-01")
		return
	}
	header.Set("Authorization", "Bearer "+key)
}

// revealed returns configured headers with their values.
func revealed(headers map[string]config.Secret) http.Header {
	all := http.Header{}
	for name, value := range headers {
		all.Set(name, value.Reveal())
	}
	return all
}

// below returns the URL of a route of a server, or "".
func below(address, route string) string {
	joined, _ := url.JoinPath(address, route)
	return joined
}

// The providers' own servers.
const (
	openAIAPI    = "https://api.openai.com/v1"
	anthropicAPI = "https://api.anthropic.com"
)

// modelURL is where a model is, empty for a scripted one.
func modelURL(m config.Model) string {
	switch m.Provider {
	case config.ProviderAnthropic:
		return cmp.Or(m.BaseURL, anthropicAPI)
	case config.ProviderOpenAI, config.ProviderOpenAIResponses:
		return cmp.Or(m.BaseURL, openAIAPI)
	}
	return ""
}

// upstreams asks each server that agents need. Where there are credentials, it asks for something
// that needs them and changes nothing, such as the list of models; otherwise for the headers of the
// server's root: any answer shows that it is there. What a command says is not looked at: it would
// have to be started.
func (d *exam) upstreams(ctx context.Context) {
	all := dependencies(d.config)
	asked := map[string]*error{} // why there is no answer, by request
	var asking errgroup.Group
	asking.SetLimit(upstreamsAtOnce)
	for _, dep := range all {
		id := dep.id()
		if id == "" || asked[id] != nil {
			continue
		}
		why := new(error)
		asked[id] = why
		asking.Go(func() error {
			*why = dep.answers(ctx)
			return nil
		})
	}
	_ = asking.Wait() // it is nil
	found := map[string][]string{}
	var order []string
	for _, dep := range all {
		var err error
		if why := asked[dep.id()]; why != nil {
			err = *why
		} else if _, missing := exec.LookPath(dep.run); missing != nil {
			err = fmt.Errorf("there is no program %s", dep.run)
		}
		if err != nil {
			d.unreachable(dep, err)
			continue
		}
		if found[dep.check] == nil {
			order = append(order, dep.check)
		}
		found[dep.check] = append(found[dep.check], cmp.Or(dep.run, hostOf(dep.url)))
	}
	for _, check := range order {
		d.OK(check, "reached: %s", strings.Join(slices.Compact(slices.Sorted(slices.Values(found[check]))), ", "))
	}
}

// unreachable reports a dependency that is not there: a problem, but only a
// doubt where the configuration alone is looked at, maybe on another machine.
func (d *exam) unreachable(dep dependency, err error) {
	found := dep.key + ": " + err.Error()
	if dep.model != "" {
		found = dep.key + ", model " + dep.model + ": " + err.Error()
	}
	advice := "correct " + dep.key + ", or start the server: what needs it fails"
	var refused *upstream.Error
	if errors.As(err, &refused) && refused.Status != 0 {
		advice = "correct " + dep.secret + ": the server does not accept it"
	}
	if dep.run != "" {
		advice = "correct " + dep.key + ", or install the program: what needs it fails"
	}
	if d.cmd.ConfigOnly {
		d.Warning(dep.check, dep.key, found, advice)
		return
	}
	d.Problem(dep.check, dep.key, found, advice)
}

// upstreamClient follows no redirect: that is an answer.
var upstreamClient = &http.Client{
	Timeout:       upstreamTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// id distinguishes requests; empty: there is none.
func (d dependency) id() string {
	if rootOf(d.url) == "" || d.asks == "" {
		return rootOf(d.url)
	}
	return fmt.Sprint(d.asks, d.header)
}

// answers reports why a server gives no answer, or that it refuses the credentials.
func (d dependency) answers(ctx context.Context) error {
	method, address := http.MethodHead, rootOf(d.url)
	if d.asks != "" {
		method, address = http.MethodGet, d.asks
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return errors.New("the URL can't be used")
	}
	if d.header != nil {
		req.Header = d.header
	}
	resp, err := upstreamClient.Do(req)
	if err == nil {
		if s := resp.StatusCode; d.asks != "" && (s == http.StatusUnauthorized || s == http.StatusForbidden) {
			err = &upstream.Error{Host: hostOf(d.url), Status: s}
		}
		return errors.Join(err, resp.Body.Close())
	}
	e := upstream.Explain(address, "", err)
	if timeout, ok := errors.AsType[*url.Error](err); ok && timeout.Timeout() && e.Reason == "" {
		e.Reason = "no answer in time"
	}
	return e
}

// rootOf is the URL of the root of a server, without what a URL may hide.
func rootOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String()
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
