package result

import (
	"cmp"
	"encoding/xml"
	"fmt"
)

// The elements of JUnit XML that continuous integration reads.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Error   *junitMessage `xml:"error,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as JUnit XML: a case for each session, in the class of its agent. A
// regression is a failure, a session that could not be judged an error, a flaky one is skipped.
func (r *Report) JUnit() ([]byte, error) {
	s := junitSuite{Name: cmp.Or(r.Cohort, "lab"), Tests: len(r.Results), Time: fmt.Sprintf("%.3f", r.Seconds)}
	for _, c := range r.Results {
		one := junitCase{Class: cmp.Or(c.Agent, "session"), Name: c.Session}
		if d := c.Difference; d != nil {
			m := &junitMessage{
				Message: d.Why, Type: string(d.Kind),
				Text: fmt.Sprintf("%s\nobserved:  %s\nbaseline:  %s\ncandidate: %s\n", d.Place(), d.Observed, d.Baseline, d.Candidate),
			}
			switch c.Verdict {
			case Regression:
				one.Failure = m
				s.Failures++
			case Unjudged:
				one.Error = m
				s.Errors++
			case Flaky:
				one.Skipped = m
				s.Skipped++
			}
		}
		s.Cases = append(s.Cases, one)
	}
	out, err := xml.MarshalIndent(junitSuites{Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Skipped: s.Skipped, Time: s.Time, Suite: s}, "", "  ")
	return append([]byte(xml.Header), append(out, '\n')...), err
}
