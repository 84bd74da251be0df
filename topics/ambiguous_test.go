package topics

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// namesOf returns the names that an agent has on a broker, of topics and of groups.
func namesOf(c Catalog) (topics, groups []string) {
	for _, s := range c.Specs() {
		topics = append(topics, s.Name)
	}
	return topics, c.allGroups()
}

func TestAgentsThatWouldShareTopicsOrGroupsAreRejected(t *testing.T) {
	const base = "support"
	c, err := For(base)
	require.NoError(t, err)
	topics, groups := namesOf(c)
	var endings []string
	for _, names := range [][]string{topics, groups} {
		for _, name := range names {
			// Each end of a name could be the whole suffix of an agent's name.
			for at := len(base) + 1; at < len(name); at++ {
				other := name[:at]
				theirTopics, theirGroups := namesOf(catalog(other, catalogOptions{routeTTL: DefaultRouteTTL}))
				shared := slices.ContainsFunc(theirTopics, func(n string) bool { return slices.Contains(topics, n) }) ||
					slices.ContainsFunc(theirGroups, func(n string) bool { return slices.Contains(groups, n) })
				_, err := For(other)
				if shared {
					require.ErrorIs(t, err, ErrAgent, other)
					require.ErrorContains(t, err, `with agent "support"`)
					endings = append(endings, strings.TrimPrefix(other, base))
				} else {
					require.NoError(t, err, other)
				}
			}
		}
	}
	slices.Sort(endings)
	require.Equal(t, []string{"-delivery", "-enriched", "-fold", "-gate", "-gate-grant", "-memoir-context"}, slices.Compact(endings))
	for _, agent := range []string{"delivery", "fold", "support-team", "delivery-desk", "fold-delivery-x"} {
		_, err := For(agent)
		require.NoError(t, err, agent)
	}
}

// A group that is not among those that For compares could be another agent's.
func TestEveryGroupOfTheCatalogIsCompared(t *testing.T) {
	c, err := For("support")
	require.NoError(t, err)
	v := reflect.ValueOf(c)
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if !strings.HasSuffix(name, "Group") {
			continue
		}
		require.Contains(t, c.allGroups(), v.Method(i).Call(nil)[0].String(), name)
	}
}
