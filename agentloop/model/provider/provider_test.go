package provider_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file fact.MessageFile
		want provider.File
	}{
		"image": {
			fact.MessageFile{Data: "data:image/png;base64,AA==", MediaType: "image/png", Filename: "a.png"},
			provider.File{Name: "a.png", MediaType: "image/png", Base64: "AA=="},
		},
		"type in the URL": {
			fact.MessageFile{Data: "data:Image/JPEG;base64,AA=="},
			provider.File{MediaType: "image/jpeg", Base64: "AA=="},
		},
		"type is a pattern": {
			fact.MessageFile{Data: "data:image/webp;base64,AA==", MediaType: "image/*"},
			provider.File{MediaType: "image/webp", Base64: "AA=="},
		},
		"text that is not in base64": {
			fact.MessageFile{Data: "DATA:,a%20%c3%a4,b", MediaType: "text/csv; charset=utf-8"},
			provider.File{MediaType: "text/csv", Base64: "YSDDpCxi"},
		},
		"no type": {
			fact.MessageFile{Data: "data:;base64,"},
			provider.File{MediaType: "text/plain"},
		},
		"escaped base64": {
			fact.MessageFile{Data: "data:application/pdf;base64,a%2Bb%3D"},
			provider.File{MediaType: "application/pdf", Base64: "a+b="},
		},
		"hosted": {
			fact.MessageFile{Data: "https://example.com/a.png", MediaType: "image/png"},
			provider.File{MediaType: "image/png", URL: "https://example.com/a.png"},
		},
	} {
		got, err := provider.NewFile(c.file)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	for _, data := range []string{"", "dat", "data:image/png", "data:,%zz", "file:///etc/passwd", "http://"} {
		_, err := provider.NewFile(fact.MessageFile{Data: data, Filename: strings.Repeat("n", 1000)})
		var e *model.Error
		require.ErrorAs(t, err, &e, data)
		require.Equal(t, model.CodeInvalidRequest, e.Code)
		require.False(t, e.Retryable)
		require.Less(t, len(e.Message), 300)
	}
}

func TestTextOfFiles(t *testing.T) {
	text, err := provider.File{Base64: "YSDDpCxi"}.Text()
	require.NoError(t, err)
	require.Equal(t, "a ä,b", text)
	for _, content := range []string{"no base64", "/w=="} {
		_, err := provider.File{Base64: content}.Text()
		require.Error(t, err)
	}
}

func TestNamesOfCalls(t *testing.T) {
	require.Equal(t, "toolu_01-2", provider.CallID("toolu_01-2"))
	strange := []string{"functions.f:0", "functions.f:1", strings.Repeat("x", 65), "", "ä"}
	seen := map[string]bool{}
	for _, id := range strange {
		got := provider.CallID(id)
		require.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, got)
		require.Equal(t, got, provider.CallID(id), "the call and its result have one id")
		seen[got] = true
	}
	require.Len(t, seen, len(strange))

	require.Equal(t, "get_weather", provider.CallName("get_weather"))
	require.Equal(t, "files_read_1", provider.CallName("files.read 1"))
	require.Len(t, provider.CallName(strings.Repeat("é", 65)), 64)
}
