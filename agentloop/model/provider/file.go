package provider

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
)

// File is a file of a user's message, taken apart: hosted at URL, or with its
// content.
type File struct {
	Name      string // may be empty
	MediaType string // without parameters, in lower case
	URL       string // empty if the content is here
	Base64    string // the content, in the standard encoding
}

// NewFile takes a file apart. The error is a *model.Error with the code
// provider_invalid_request, as are those of File's methods.
func NewFile(f fact.MessageFile) (File, error) {
	out := File{Name: f.Filename, MediaType: mediaType(f.MediaType)}
	if len(f.Data) < len("data:") || !strings.EqualFold(f.Data[:len("data:")], "data:") {
		u, err := url.Parse(f.Data)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return File{}, out.Unusable("is neither a data URL nor hosted")
		}
		out.URL = f.Data
		return out, nil
	}
	head, data, ok := strings.Cut(f.Data[len("data:"):], ",")
	data, err := url.PathUnescape(data)
	if !ok || err != nil {
		return File{}, out.Unusable("is not a data URL")
	}
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	if out.MediaType == "" || strings.Contains(out.MediaType, "*") { // image/*, say
		out.MediaType = cmp.Or(mediaType(kind), "text/plain")
	}
	if out.Base64 = data; !isBase64 {
		out.Base64 = base64.StdEncoding.EncodeToString([]byte(data))
	}
	return out, nil
}

// IsImage says whether the file is an image.
func (f File) IsImage() bool { return strings.HasPrefix(f.MediaType, "image/") }

// DataURL is the content as a data URL.
func (f File) DataURL() string { return "data:" + f.MediaType + ";base64," + f.Base64 }

// Text is the content of a text file.
func (f File) Text() (string, error) {
	text, err := base64.StdEncoding.DecodeString(f.Base64)
	if err != nil {
		return "", f.Unusable("is not in base64")
	}
	if !utf8.Valid(text) {
		return "", f.Unusable("is not UTF-8")
	}
	return string(text), nil
}

// Unusable is the error of a file that can't be sent.
func (f File) Unusable(why string) error {
	return &model.Error{
		Code: model.CodeInvalidRequest, Message: fmt.Sprintf("the file %.100q of type %.100q %s", f.Name, f.MediaType, why),
	}
}

// mediaType drops the parameters of a media type.
func mediaType(s string) string {
	if media, _, err := mime.ParseMediaType(s); err == nil {
		return media
	}
	return strings.ToLower(strings.TrimSpace(s))
}
