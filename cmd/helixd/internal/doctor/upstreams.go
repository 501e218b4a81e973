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
	"sync"
	"time"

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
}

// dependencies returns what the configured agents need, by setting.
func dependencies(c *config.Config) (all []dependency) {
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a, at := c.Agents[name], "agents."+name
		if address := modelURL(a.Model); address != "" {
			all = append(all, dependency{check: checkModels, key: at + ".model.baseURL", url: address, model: a.Model.Name})
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
			all = append(all, dependency{check: checkRemoteAgents, key: at + ".remoteAgents." + remote + ".url", url: a.RemoteAgents[remote].URL})
		}
	}
	if e := c.Memory.Embedder; e.Provider == config.EmbedderOpenAI {
		all = append(all, dependency{check: checkEmbedder, key: "memory.embedder.baseURL", url: cmp.Or(e.BaseURL, openAIAPI), model: e.Name})
	}
	return all
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

// upstreams asks each server that agents need for the headers of its root, without
// a key and without the URL's path: any answer shows that it is there. What a
// command says is not looked at: it would have to be started.
func (d *exam) upstreams(ctx context.Context) {
	all := dependencies(d.config)
	asked := map[string]func() error{} // by root
	slots := make(chan struct{}, upstreamsAtOnce)
	var begun sync.WaitGroup
	for _, dep := range all {
		root := rootOf(dep.url)
		if root == "" || asked[root] != nil {
			continue
		}
		ask := sync.OnceValue(func() error {
			slots <- struct{}{}
			defer func() { <-slots }()
			return answers(ctx, root)
		})
		asked[root] = ask
		begun.Go(func() { _ = ask() })
	}
	begun.Wait()
	found := map[string][]string{}
	var order []string
	for _, dep := range all {
		var err error
		if ask := asked[rootOf(dep.url)]; ask != nil {
			err = ask()
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

// answers reports why a server gives no answer.
func answers(ctx context.Context, root string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, root, nil)
	if err != nil {
		return errors.New("the URL can't be used")
	}
	resp, err := upstreamClient.Do(req)
	if err == nil {
		return resp.Body.Close()
	}
	e := upstream.Explain(root, "", err)
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
