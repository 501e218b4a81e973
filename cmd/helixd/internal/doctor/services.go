package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/settings"
)

// tracingTimeout is how long a collector has to answer.
const tracingTimeout = 5 * time.Second

// certificates looks whether the configured ones can be used, and for how long.
func (d *exam) certificates() {
	all := settings.Certificates(d.config)
	well := 0
	var first time.Time
	for _, c := range all {
		found, problem := c.Finding(d.now())
		switch {
		case problem && !(d.cmd.ConfigOnly && errors.Is(c.Err, fs.ErrNotExist)): // another machine may have the file
			d.Problem(checkCertificates, c.File, found, c.Advice())
		case found != "":
			d.Warning(checkCertificates, c.File, found, c.Advice())
		default:
			well++
		}
		if first.IsZero() || c.Ends.Before(first) {
			first = c.Ends
		}
	}
	if len(all) > 0 && well == len(all) {
		d.OK(checkCertificates, "files: %d, the first expires on %s", len(all), first.UTC().Format(time.DateOnly))
	}
}

// readModels looks whether their file can be written, or made.
func (d *exam) readModels() {
	if !d.config.ReadModels.Enabled {
		return
	}
	path := settings.ReadModelsPath(d.config)
	if err := writable(path); err != nil {
		d.Problem(checkReadModels, path, err.Error(), fmt.Sprintf("let the user that runs helixd write to %s, or change readModels.file", path))
		return
	}
	d.OK(checkReadModels, "%s can be written", path)
}

// writable reports why a file can't be written or created. It leaves no file.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	if !os.IsNotExist(err) {
		return err
	}
	if f, err = os.CreateTemp(existingParent(filepath.Dir(path)), ".helixd-doctor-*"); err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// tracing sends the collector an export of nothing.
func (d *exam) tracing(ctx context.Context) {
	t := d.config.Tracing
	if t.Endpoint == "" {
		return
	}
	target := redacted(t.Endpoint)
	endpoint, headers, err := settings.Collector(t)
	if err != nil {
		return // the configuration's check has reported it
	}
	ctx, cancel := context.WithTimeout(ctx, tracingTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(nil))
	if err != nil {
		return // the configuration's check has reported it
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if u, is := errors.AsType[*url.Error](err); is {
			err = u.Err // without the URL
		}
		d.Warning(checkTracing, target, fmt.Sprintf("%s can't be reached: %v", target, err), "start the collector, or correct tracing.endpoint: only traces are lost")
		return
	}
	resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 2:
		d.OK(checkTracing, "%s takes traces", target)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		d.Problem(checkTracing, target, target+" answers "+resp.Status, "correct tracing.headers: the collector does not know them")
	default:
		d.Warning(checkTracing, target, target+" answers "+resp.Status, "correct tracing.endpoint: it is the base URL, to which /v1/traces is added")
	}
}
