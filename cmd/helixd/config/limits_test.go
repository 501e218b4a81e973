package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/quota"
)

func TestTenants(t *testing.T) {
	c, err := loadText(t, "tenants: {default: {requestsPerSecond: 0.5}, red: {streams: 3}, blue: {}}\n", nil)
	require.NoError(t, err)
	q := quota.New(c.Quota(), nil, nil)
	require.Equal(t, quota.Limits{RequestsPerSecond: 0.5}, q.Of("green"))
	require.Equal(t, quota.Limits{RequestsPerSecond: 0.5}, q.Of("default"))
	require.Equal(t, quota.Limits{Streams: 3}, q.Of("red"))
	require.Equal(t, quota.Limits{}, q.Of("blue"))
	require.Equal(t, quota.Limits{}, q.Of(""), "a caller without a tenant")
	require.Equal(t, quota.Limits{}, (*quota.Quota)(nil).Of("red"))
	for _, bad := range []string{"{red: {streams: -1}}", "{red: {requestsPerSecond: -1}}", "{\"\": {}}", "{red: {streams: 1.5}}", "{red: {other: 1}}"} {
		_, err := loadText(t, "tenants: "+bad+"\n", nil)
		require.ErrorContains(t, err, "helix.yaml:1: tenants", bad)
	}
	c, err = loadText(t, "tenants: {red: {tokensPerDay: 7, usdPerDay: 0.5}}\nreadModels: {enabled: false}\n", nil)
	require.NoError(t, err)
	require.Equal(t, quota.Limits{TokensPerDay: 7, USDPerDay: 0.5}, c.Quota().Named["red"])
	const agent = "\nagents: {a: {model: {provider: openai, name: some-model, apiKey: k}}}\n"
	_, err = loadText(t, "tenants: {red: {usdPerDay: 1}}"+agent, nil)
	require.ErrorContains(t, err, "helix.yaml:1: tenants.red.usdPerDay: needs prices.some-model, the model of agents.a")
	_, err = loadText(t, "tenants: {red: {usdPerDay: 1}}"+agent+"prices: {some-model: {input: 1, output: 2}}\n", nil)
	require.NoError(t, err)
	_, err = loadText(t, "tenants: {red: {bytes: 1MiB}}\nreadModels: {enabled: false}\n", nil)
	require.ErrorContains(t, err, "tenants.red.bytes: needs readModels.enabled")
	_, err = loadText(t, "tenants: {red: {sessions: -1, bytes: 1MiB, runs: 1, streams: -2, tokensPerDay: -3}}\nreadModels: {enabled: false}\n", nil)
	require.EqualError(t, err, `helix.yaml:1: tenants.red.bytes: needs readModels.enabled, which count it
helix.yaml:1: tenants.red.runs: needs readModels.enabled, which count it
helix.yaml:1: tenants.red.sessions: must be a number from 0 on
helix.yaml:1: tenants.red.streams: must be a number from 0 on
helix.yaml:1: tenants.red.tokensPerDay: must be a number from 0 on`)
	for _, bad := range []string{"connections", "streams"} {
		_, err := loadText(t, "limits: {"+bad+": -1}\n", nil)
		require.ErrorContains(t, err, "limits."+bad)
	}
}

// However many connections a node has, one caller can't take most of them.
func TestMostStreams(t *testing.T) {
	for connections, streams := range map[int]int{1: 1, 10: 5, 127: 63, 128: 64, 2048: 64, 4096: 128, DefaultConnections: 1024} {
		require.Equal(t, streams, Limits{}.MostStreams(connections), "of %d connections", connections)
	}
	require.Equal(t, 7, Limits{Streams: 7}.MostStreams(10))
}
