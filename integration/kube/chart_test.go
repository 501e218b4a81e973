package kube

import (
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

const chartFolder = "../../cmd/helixd/packaging/chart"

type values = map[string]any

// secrets are what a user must give.
var secrets = values{"values": values{"HELIX_TOKEN": "t", "HELIX_CLUSTER_PASSWORD": "p", "HELIX_TICKET_KEY": strings.Repeat("k", 32)}}

// render is what helm template prints, a text a file.
func render(t *testing.T, set values) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartFolder)
	require.NoError(t, err)
	all, err := util.ToRenderValues(chart, set, common.ReleaseOptions{Name: "helixd", Namespace: "agents", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// objects are the objects of a chart, as the API server would decode them: an unknown
// field, or one that is there twice, is an error.
type objects struct {
	set      *apps.StatefulSet
	budget   *policy.PodDisruptionBudget
	services map[string]*core.Service
	config   *core.ConfigMap
	secret   *core.Secret
	monitor  *monitoring.ServiceMonitor
}

func strictDecoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, core.AddToScheme, policy.AddToScheme, monitoring.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

func rendered(t *testing.T, set values) (o objects) {
	t.Helper()
	files, err := render(t, set)
	require.NoError(t, err)
	strict := strictDecoder(t)
	o.services = map[string]*core.Service{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object, _, err := strict.Decode([]byte(document), nil, nil)
			require.NoError(t, err, "%s:\n%s", name, document)
			switch object := object.(type) {
			case *apps.StatefulSet:
				o.set = object
			case *policy.PodDisruptionBudget:
				o.budget = object
			case *core.Service:
				o.services[object.Name] = object
			case *core.ConfigMap:
				o.config = object
			case *core.Secret:
				o.secret = object
			case *monitoring.ServiceMonitor:
				o.monitor = object
			default:
				t.Fatalf("%s: %T", name, object)
			}
		}
	}
	return o
}

func selects(t *testing.T, selector *meta.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := meta.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return s.Matches(labels.Set(of))
}

// TestChart: the objects are the API's, and what refers to something finds it.
func TestChart(t *testing.T) {
	o := rendered(t, values{"secret": secrets, "serviceMonitor": values{"enabled": true}})
	pod := o.set.Spec.Template
	require.EqualValues(t, 3, *o.set.Spec.Replicas)
	require.True(t, selects(t, o.set.Spec.Selector, pod.Labels))
	require.True(t, selects(t, o.budget.Spec.Selector, pod.Labels))
	require.Equal(t, 1, o.budget.Spec.MaxUnavailable.IntValue())
	require.Equal(t, "data", o.set.Spec.VolumeClaimTemplates[0].Name)

	own := o.services[o.set.Spec.ServiceName]
	require.NotNil(t, own)
	require.Equal(t, core.ClusterIPNone, own.Spec.ClusterIP)
	require.True(t, own.Spec.PublishNotReadyAddresses)
	container := pod.Spec.Containers[0]
	ports := map[string]bool{}
	for _, p := range container.Ports {
		ports[p.Name] = true
	}
	for _, service := range o.services {
		require.True(t, labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)), service.Name)
		for _, p := range service.Spec.Ports {
			require.True(t, ports[p.TargetPort.StrVal], "%s: %v", service.Name, p)
		}
	}
	for _, probe := range []*core.Probe{container.LivenessProbe, container.ReadinessProbe} {
		require.True(t, ports[probe.HTTPGet.Port.StrVal])
	}
	volumes := map[string]bool{"data": true}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range container.VolumeMounts {
		require.True(t, volumes[m.Name], m.Name)
	}
	require.Equal(t, o.secret.Name, container.EnvFrom[0].SecretRef.Name)

	scraped := 0
	for _, service := range o.services {
		if selects(t, &o.monitor.Spec.Selector, service.Labels) {
			scraped++
		}
	}
	require.Equal(t, 1, scraped, "each node once")
	require.Empty(t, container.Args, "the image's")
	require.EqualValues(t, 7, *rendered(t, values{"secret": secrets, "nodes": 7}).set.Spec.Replicas, "five that lose one")
	credentials := o.monitor.Spec.Endpoints[0].Authorization.Credentials
	require.Equal(t, o.secret.Name, credentials.Name)
	require.Contains(t, o.secret.StringData, credentials.Key)
}

// TestChartOfFiveNodes: everything that can be set is set.
func TestChartOfFiveNodes(t *testing.T) {
	o := rendered(t, values{
		"secret": values{"existing": "mine"}, "nodes": 5, "replicas": 5, "partitions": 1, "hosts": []any{"helix.example"},
		"imagePullSecrets": []any{values{"name": "pull"}}, "tls": values{"http": "http", "cluster": "cluster"},
		"persistence":    values{"size": "1Gi", "storageClass": "fast"},
		"args":           []any{"--join"},
		"serviceMonitor": values{"enabled": true, "labels": values{"release": "prometheus"}, "ca": values{"secret": "authority"}},
		"service":        values{"type": "LoadBalancer", "annotations": values{"a": "b"}}, "podAnnotations": values{"c": "d"},
		"nodeSelector": values{"disk": "ssd"}, "tolerations": []any{values{"key": "k", "operator": "Exists"}},
		"affinity": values{"nodeAffinity": values{}}, "image": values{"repository": "r/helixd", "tag": "v9"},
	})
	require.Nil(t, o.secret)
	pod := o.set.Spec.Template
	require.EqualValues(t, 5, *o.set.Spec.Replicas)
	container := pod.Spec.Containers[0]
	require.Equal(t, "mine", container.EnvFrom[0].SecretRef.Name)
	require.Equal(t, "r/helixd:v9", container.Image)
	require.Equal(t, core.URISchemeHTTPS, container.ReadinessProbe.HTTPGet.Scheme)
	require.Nil(t, pod.Spec.Affinity.PodAntiAffinity)
	require.Equal(t, "fast", *o.set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName)
	secretsOf := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			secretsOf[v.Name] = v.Secret.SecretName
		}
	}
	require.Equal(t, map[string]string{"http-tls": "http", "cluster-tls": "cluster"}, secretsOf)
	require.Equal(t, append(slices.Clone(imageArgs), "--join"), container.Args)
	require.Equal(t, "prometheus", o.monitor.Labels["release"])
	authority := o.monitor.Spec.Endpoints[0].TLSConfig.CA.Secret
	require.Equal(t, "authority ca.crt", authority.Name+" "+authority.Key)
	public := rendered(t, values{"secret": secrets, "tls": values{"http": "http"}, "serviceMonitor": values{"enabled": true}})
	require.Nil(t, public.monitor.Spec.Endpoints[0].TLSConfig.CA.Secret, "the system's root certificates")
	require.Contains(t, o.config.Data["helix.yaml"], "nats://helixd-4.helixd-nodes:6222")
	require.Contains(t, o.config.Data["helix.yaml"], "helix.example")
}

// TestChartRefuses: what can't work is refused before anything is installed, and a
// mistyped field of a template by the strict types.
func TestChartRefuses(t *testing.T) {
	for name, set := range map[string]values{
		"no password of the cluster": {"secret": values{"values": values{"HELIX_TOKEN": "t"}}},
		"two nodes":                  {"secret": secrets, "nodes": 2},
		"a mistyped value":           {"secret": secrets, "persistance": values{"size": "1Gi"}},
		"a key that the chart sets":  {"secret": secrets, "config": values{"nats": values{"name": "n"}}},
	} {
		_, err := render(t, set)
		require.Error(t, err, name)
	}
	files, err := render(t, values{"secret": secrets})
	require.NoError(t, err)
	const path = "helixd/templates/statefulset.yaml"
	require.Contains(t, files[path], "podManagementPolicy")
	_, _, err = strictDecoder(t).Decode([]byte(strings.Replace(files[path], "podManagementPolicy", "podManagmentPolicy", 1)), nil, nil)
	require.ErrorContains(t, err, "podManagmentPolicy")
}
