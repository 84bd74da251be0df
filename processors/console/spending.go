package console

import (
	"cmp"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// spending is what users and tenants have spent, those that have spent most first.
type spending struct {
	byScope map[string]*topics.Spending
	byCost  ordered[*topics.Spending]
}

func (s *spending) init() {
	s.byScope = map[string]*topics.Spending{}
	s.byCost.compare = func(a, b *topics.Spending) int {
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), strings.Compare(a.Scope, b.Scope))
	}
}

// put replaces what a scope has spent, nil for nothing. It reports whether there is room for it.
func (s *spending) put(scope string, v *topics.Spending, limit int) bool {
	if old := s.byScope[scope]; old != nil {
		s.byCost.remove(old)
		delete(s.byScope, scope)
	}
	switch {
	case v == nil:
		return true
	case len(s.byScope) >= limit:
		return false
	}
	s.byScope[scope] = v
	s.byCost.add(v)
	return true
}
