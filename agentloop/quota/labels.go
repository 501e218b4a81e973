package quota

import (
	"maps"
	"slices"
)

// MaxLabels is how many tenants have their own label.
const MaxLabels = 100

// Labels returns those of the tenants with limits by their names that have a label of
// their own, sorted: the first MaxLabels of them.
func (q *Quota) Labels() []string {
	if q == nil {
		return nil
	}
	return q.tenants.Load().labels
}

// Label returns a tenant's name if it is one of [Quota.Labels], otherwise "other". It returns
// "" for callers without a tenant.
func (q *Quota) Label(tenant string) string {
	if q == nil || tenant == "" {
		return ""
	}
	if _, own := slices.BinarySearch(q.Labels(), tenant); own {
		return tenant
	}
	return "other"
}

func labelsOf(named map[string]Limits) []string {
	all := slices.Sorted(maps.Keys(named))
	return all[:min(len(all), MaxLabels)]
}
