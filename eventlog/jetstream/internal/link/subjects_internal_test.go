package link

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAListingWhileSubjectsComeAndGo: a subject that is there all the time is listed,
// whatever is removed or created between two pages, and the listing ends.
func TestAListingWhileSubjectsComeAndGo(t *testing.T) {
	const size = 4
	for _, tc := range []struct {
		name    string
		between func(asked int, subjects []string) []string
	}{
		{"nothing changes", func(_ int, all []string) []string { return all }},
		{"the first is removed", func(_ int, all []string) []string { return all[1:] }},
		{"the first two are removed", func(_ int, all []string) []string { return all[2:] }},
		{"the page is removed", func(asked int, all []string) []string {
			if asked == 1 {
				return all[size:]
			}
			return all
		}},
		{"more than a page is removed", func(asked int, all []string) []string {
			if asked == 3 {
				return all[2*size:]
			}
			return all
		}},
		{"all that follow are removed", func(_ int, all []string) []string { return all[:1] }},
		{"one is created before", func(asked int, all []string) []string {
			return slices.Insert(slices.Clone(all), 0, fmt.Sprintf("a%03d", 999-asked))
		}},
		{"one is created and one removed", func(asked int, all []string) []string {
			return append([]string{all[0] + "-"}, all[2:]...)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var subjects []string
			for i := range 5*size + 1 {
				subjects = append(subjects, fmt.Sprintf("s%03d", i))
			}
			stays, asked := slices.Clone(subjects), 0
			got, err := allSubjects(func(offset int) (subjectsPage, error) {
				if asked++; asked > 1 && len(subjects) > 2 {
					subjects = tc.between(asked-1, subjects)
				}
				require.Less(t, asked, 100, "it does not end")
				stays = slices.DeleteFunc(stays, func(s string) bool { return !slices.Contains(subjects, s) })
				page := subjectsPage{subjects: map[string]uint64{}, total: len(subjects)}
				from := min(offset, len(subjects))
				for _, s := range subjects[from:min(from+size, len(subjects))] {
					page.subjects[s] = 1
				}
				return page, nil
			})
			require.NoError(t, err)
			for _, s := range stays {
				require.Contains(t, got, s)
			}
		})
	}
}
