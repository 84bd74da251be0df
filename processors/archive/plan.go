package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

// plan is what a backup holds besides the records, and what a restore or a repartition is about. It does not change while they run.
type plan struct {
	Agent  string  `json:"agent"`
	Topics []topic `json:"topics"`
	// Groups are the committed offsets of consumer groups: by group, topic and partition.
	Groups map[string]map[string]positions `json:"groups"`
	// Shares are the offsets before which share groups have finished all records.
	Shares map[string]map[string]positions `json:"shares"`
	// To is the number of partitions that the topics are moved to; 0 in a backup and a restore.
	To int32 `json:"to,omitzero"`
}

// topicID is that of one incarnation of a topic: a topic that is deleted and created again has another one.
type topicID = [16]byte

// topic is a topic of the set.
type topic struct {
	Name        string            `json:"name"`
	ID          topicID           `json:"id"`
	Replication int16             `json:"replication"`
	Config      map[string]string `json:"config"` // what is set for the topic itself
	Parts       []span            `json:"partitions"`
	// Moved says that the topic has the partitions of the sessions, or of another key of a table.
	Moved bool `json:"moved"`
}

// span is the offsets of a partition: from Start to before End.
type span struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// positions are the offsets of a group in a topic, by partition.
type positions map[int32]position

// position is a committed offset with its metadata.
type position struct {
	At       int64  `json:"at"`
	Metadata string `json:"metadata,omitzero"`
}

// find returns a topic.
func (p *plan) find(name string) (topic, bool) {
	i := slices.IndexFunc(p.Topics, func(t topic) bool { return t.Name == name })
	if i < 0 {
		return topic{}, false
	}
	return p.Topics[i], true
}

// id is a digest of the plan: it names a backup, and what a journal is about.
func (p *plan) id() string {
	raw, _ := json.Marshal(p, json.Deterministic(true)) // strings and numbers
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12])
}

// readers returns where each group is in a topic, consumer and share groups alike.
func (p *plan) readers(name string) map[reader]positions {
	all := map[reader]positions{}
	for kind, groups := range map[bool]map[string]map[string]positions{false: p.Groups, true: p.Shares} {
		for group, topics := range groups {
			if at, ok := topics[name]; ok {
				all[reader{group, kind}] = at
			}
		}
	}
	return all
}

// reader is a group that reads a topic.
type reader struct {
	group string
	share bool
}

// MarshalText implements encoding.TextMarshaler, for the names of JSON.
func (r reader) MarshalText() ([]byte, error) {
	if r.share {
		return []byte("share:" + r.group), nil
	}
	return []byte("group:" + r.group), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *reader) UnmarshalText(text []byte) error {
	if len(text) < 6 {
		return fmt.Errorf("%w: a journal of another version", ErrUnfinished)
	}
	r.share, r.group = string(text[:6]) == "share:", string(text[6:])
	return nil
}

// differs says how the agent differs from the plan now, "" if it does not. The log start may have moved: old records are deleted
// by age, and nothing else happens to them.
func (p *plan) differs(now *plan) string {
	for _, was := range p.Topics {
		is, ok := now.find(was.Name)
		switch {
		case !ok || is.ID != was.ID:
			return "the topic " + was.Name + " was deleted"
		case len(is.Parts) != len(was.Parts):
			return "the topic " + was.Name + " has more partitions"
		}
		for n := range was.Parts {
			if was.Parts[n].End != is.Parts[n].End {
				return fmt.Sprintf("%s/%d ended at %d and ends at %d: a process writes to it", was.Name, n, was.Parts[n].End, is.Parts[n].End)
			}
		}
	}
	for kind, groups := range map[string][2]map[string]map[string]positions{
		"group": {p.Groups, now.Groups}, "share group": {p.Shares, now.Shares},
	} {
		for _, name := range slices.Sorted(maps.Keys(groups[1])) {
			for topic, is := range groups[1][name] {
				if _, ours := p.find(topic); ours && !maps.Equal(is, groups[0][name][topic]) {
					return fmt.Sprintf("the %s %s has committed offsets of %s", kind, name, topic)
				}
			}
		}
	}
	return ""
}
