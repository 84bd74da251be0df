package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/operations"
	"github.com/turntable-streams/turntable/topics"
)

// letterPage is a part of the dead letters.
type letterPage struct {
	Group, Topic, Reason, Key string
	Counts                    []countLine
	Kinds                     int // how many there are
	List                      listing[operations.Letter]
	Left                      int
}

// countLine is how many letters have a reason.
type countLine struct {
	reasonCount
	N int
}

// shownCounts is how many kinds of letters are counted on the page.
const shownCounts = 20

func showLetters(r *request) {
	x := r.console.follower.index
	b := letterPage{Group: r.first("group"), Topic: r.first("topic"), Reason: r.first("reason"), Key: r.first("key")}
	l := listing[operations.Letter]{
		Page: "/letters", Parameters: []any{"group", b.Group, "topic", b.Topic, "reason", b.Reason, "key", b.Key}, Noun: "dead letter", Empty: "No dead letter",
	}
	all := r.everything()
	func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		b.Left = x.letters.left
		if all {
			for kind, n := range x.letters.counts {
				b.Counts = append(b.Counts, countLine{kind, n})
			}
		}
	}()
	b.List = listed(r, l, pageSize, nil, entries[*operations.Letter, operations.Letter]{
		of: &x.letters.byTime,
		place: func(ms int64, id string) *operations.Letter {
			return &operations.Letter{ID: id, At: topics.Timestamp(time.UnixMilli(ms))}
		},
		cursor: func(l *operations.Letter) (int64, string) { return millis(l.At), l.ID },
		see: func(l *operations.Letter) (operations.Letter, string, bool) {
			if !b.matches(l) {
				return operations.Letter{}, "", false
			}
			return x.letters.judged(operations.LetterTopic(goka.Group(l.Group)), l), l.Key, true
		},
		some: b.Group+b.Topic+b.Reason+b.Key != "",
	})
	slices.SortFunc(b.Counts, func(a, b countLine) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Reason, b.Reason))
	})
	b.Kinds = len(b.Counts)
	b.Counts = b.Counts[:min(len(b.Counts), shownCounts)]
	r.show(http.StatusOK, "letters", page{Title: "Dead letters", Section: "/letters", About: aboutLetters, Body: b})
}

func (b letterPage) matches(l *operations.Letter) bool {
	return (b.Key == "" || b.Key == l.Key) && (b.Group == "" || b.Group == l.Group) && (b.Topic == "" || b.Topic == l.Source.Topic) && (b.Reason == "" || b.Reason == l.Reason)
}

// oneLetter is a dead letter with its value.
type oneLetter struct {
	operations.Letter
	Shown   bool
	Value   string
	Headers []headerLine
	Unfit   string // why it cannot be written back
	Refused string // why it is not written back together with others
}

type headerLine struct{ Name, Value string }

func showLetter(r *request) {
	c := r.console
	x := c.follower.index
	x.mu.Lock()
	known := x.letters.byID[r.first("id")]
	b := oneLetter{Shown: r.first("show") == "value"}
	if known != nil {
		b.Letter = x.letters.judged(operations.LetterTopic(goka.Group(known.Group)), known)
	}
	x.mu.Unlock()
	if known == nil || !r.Caller.Allowed(known.Key) {
		r.fail(http.StatusNotFound, "There is no such dead letter: it may have been deleted by age.")
		return
	}
	b.Unfit, b.Refused = b.Letter.Unfit(c.catalog, c.exists), b.Letter.Refused(c.catalog)
	p := page{Title: "Dead letter", Section: "/letters", About: aboutLetters}
	record, err := c.readLetter(r, &b.Letter)
	switch {
	case errors.Is(err, errGone):
		r.fail(http.StatusNotFound, "There is no such dead letter any more: it was deleted by age.")
		return
	case err != nil:
		p.Notices = append(p.Notices, "The record cannot be read now.")
		c.logUnreadable(err)
	case b.Shown:
		b.Value = r.masked("letter", b.Key, record.Value)
		for _, h := range record.Headers {
			b.Headers = append(b.Headers, headerLine{visible(h.Name), r.masked("letter", b.Key, h.Value)})
		}
	}
	p.Body = b
	r.show(http.StatusOK, "letter", p)
}

// readLetter reads the record of a letter.
func (c *Console) readLetter(r *request, l *operations.Letter) (processors.Inbound, error) {
	record, ok, err := c.follower.dead.ReadOf(r.Context(), r.Key(), operations.LetterTopic(goka.Group(l.Group)), l.Partition, l.Offset)
	if err == nil && !ok { // deleted by age
		err = errGone
		x := c.follower.index
		x.mu.Lock()
		defer x.mu.Unlock()
		if known := x.letters.byID[l.ID]; known != nil {
			x.letters.remove(known)
		}
	}
	return record, err
}

// exists reports whether the agent has a topic.
func (c *Console) exists(topic string) bool { return c.follower.created[topic] }
