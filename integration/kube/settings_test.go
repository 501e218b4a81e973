package kube

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// settings are what a container of a node has: its environment and its helix.yaml.
type settings struct {
	name   string // the host name by which the others reach it
	env    map[string]string
	args   []string // of helixd
	config string
}

// imageArgs are what a container runs that names nothing else, the image's CMD.
var imageArgs = []string{"serve", "--config", configFile}

const configFile = "/etc/helixd/helix.yaml"

// agents are in the configuration of the nodes that are tried.
const agents = `
agents:
  teller:
    model: {provider: scripted, scriptDelay: 100ms, script: [{text: "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen."}]}
`

// ofChart returns what Kubernetes makes of the chart for each pod.
func ofChart(t *testing.T, more values) (nodes []settings) {
	t.Helper()
	set := values{"secret": secrets, "partitions": 1}
	maps.Copy(set, more)
	o := rendered(t, set)
	container := o.set.Spec.Template.Spec.Containers[0]
	for i := range int(*o.set.Spec.Replicas) {
		pod := fmt.Sprintf("%s-%d", o.set.Name, i)
		n := settings{name: pod + "." + o.set.Spec.ServiceName, env: map[string]string{"HELIX_DATA_DIR": "/data"}, args: imageArgs, config: o.config.Data["helix.yaml"] + agents}
		if len(container.Args) > 0 {
			n.args = container.Args
		}
		for key, value := range o.secret.StringData {
			n.env[key] = value
		}
		for _, e := range container.Env {
			n.env[e.Name] = e.Value
			if e.ValueFrom != nil {
				require.Equal(t, "metadata.name", e.ValueFrom.FieldRef.FieldPath)
				n.env[e.Name] = pod
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// ofCompose returns what Compose makes of compose.yaml for each container.
func ofCompose(t *testing.T) (nodes []settings) {
	t.Helper()
	file, err := filepath.Abs("../../cmd/helixd/packaging/compose.yaml")
	require.NoError(t, err)
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: filepath.Dir(file), ConfigFiles: []types.ConfigFile{{Filename: file}},
		Environment: types.Mapping{"HELIX_TOKEN": "t", "HELIX_CLUSTER_PASSWORD": "p"},
	})
	require.NoError(t, err)
	volumes := map[string]bool{}
	for _, name := range project.ServiceNames() {
		service := project.Services[name]
		n := settings{name: service.Hostname, args: imageArgs, env: map[string]string{
			"HELIX_DATA_DIR": "/data", "HELIX_LISTEN": "0.0.0.0:8080", // of the image
			"HELIX_NATS_PARTITIONS": "1", // a cluster of 16 starts more slowly
		}}
		for key, value := range service.Environment {
			n.env[key] = *value
		}
		for _, v := range service.Volumes {
			switch v.Target {
			case "/data":
				require.Contains(t, project.Volumes, v.Source)
				require.False(t, volumes[v.Source], "two nodes share %s", v.Source)
				volumes[v.Source] = true
			case "/etc/helixd/helix.yaml":
				config, err := os.ReadFile(v.Source)
				require.NoError(t, err)
				n.config = string(config) + agents
			}
		}
		require.NotEmpty(t, n.config)
		nodes = append(nodes, n)
	}
	require.Len(t, volumes, 3)
	_, err = loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: filepath.Dir(file), ConfigFiles: []types.ConfigFile{{Filename: file}}, Environment: types.Mapping{"HELIX_TOKEN": "t"},
	})
	require.ErrorContains(t, err, "HELIX_CLUSTER_PASSWORD")
	return nodes
}

// onLoopback gives each node a loopback address in place of its host name, and a folder
// in place of its volume.
func onLoopback(nodes []settings, network, folder string) {
	var names []string
	address := func(i int) string { return fmt.Sprintf("%s.%d", network, i+1) }
	for i, n := range nodes {
		names = append(names, "//"+n.name+":", "//"+address(i)+":")
	}
	for i := range nodes {
		own := strings.NewReplacer(append(names, "0.0.0.0:", address(i)+":", "/data", filepath.Join(folder, nodes[i].name))...)
		nodes[i].config = own.Replace(nodes[i].config)
		for key, value := range nodes[i].env {
			nodes[i].env[key] = own.Replace(value)
		}
	}
}
