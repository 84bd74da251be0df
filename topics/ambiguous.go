package topics

import "strings"

// ambiguousEnding returns the end of an agent's name that makes one of its topics or groups equal to one of another agent,
// or "" if the name is unambiguous. The names of an agent are its name and a fixed suffix. So two agents share a name if one
// is called like the other with an ending, and a suffix of the other is that ending and a suffix of the first.
func ambiguousEnding(agent string, o catalogOptions) string {
	const sample = "a"
	c := catalog(sample, o)
	var topics, groups []string
	for _, s := range c.Specs() {
		topics = append(topics, strings.TrimPrefix(s.Name, sample))
	}
	for _, g := range c.allGroups() {
		groups = append(groups, strings.TrimPrefix(g, sample))
	}
	for _, suffixes := range [][]string{topics, groups} {
		for _, whole := range suffixes {
			for _, suffix := range suffixes {
				ending, ok := strings.CutSuffix(whole, suffix)
				if ok && ending != "" && strings.HasSuffix(agent, ending) && agent != ending {
					return ending
				}
			}
		}
	}
	return ""
}

// allGroups returns the names of all groups of the agent, also of those that no processor of this module has yet: an agent's
// name that is accepted stays accepted.
func (c Catalog) allGroups() []string {
	all := []string{
		c.ThinkGroup(), c.ToolGroup(), c.CompactGroup(), c.SinkGroup(), c.PeerSinkGroup(), c.MemoirGroup(),
		c.HistoryImportGroup(),
	}
	for _, g := range c.Groups() {
		all = append(all, string(g))
	}
	return all
}
