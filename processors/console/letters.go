package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/operations"
)

// letters are the dead letters of all groups, and what says which of them were written back.
type letters struct {
	byTime ordered[*operations.Letter] // oldest first
	byID   map[string]*operations.Letter
	marks  map[string]operations.Marks // by topic
	byKey  map[string][]*operations.Letter
	counts map[reasonCount]int
	left   int // letters that were forgotten: the oldest
	// waiting is how many letters were not written back. It is counted again after a change.
	waiting int
	changed bool
}

// reasonCount is what dead letters are counted by.
type reasonCount struct{ Group, Topic, Reason string }

func (l *letters) init() {
	l.byID, l.marks, l.counts = map[string]*operations.Letter{}, map[string]operations.Marks{}, map[reasonCount]int{}
	l.byKey = map[string][]*operations.Letter{}
	l.byTime.compare = func(a, b *operations.Letter) int {
		return cmp.Or(cmp.Compare(millis(a.At), millis(b.At)), strings.Compare(a.ID, b.ID))
	}
}

func countOf(l *operations.Letter) reasonCount { return reasonCount{l.Group, l.Source.Topic, l.Reason} }

// marksOf returns the marks of a topic.
func (l *letters) marksOf(topic string) operations.Marks {
	m, ok := l.marks[topic]
	if !ok {
		m = operations.NewMarks()
		l.marks[topic] = m
	}
	return m
}

// add adds a letter. limit is how many are kept.
func (l *letters) add(letter *operations.Letter, limit int) {
	l.changed = true
	if _, known := l.byID[letter.ID]; known { // the topic was deleted and created again
		l.remove(l.byID[letter.ID])
	}
	l.byID[letter.ID] = letter
	l.byKey[letter.Key] = append(l.byKey[letter.Key], letter)
	l.byTime.add(letter)
	l.counts[countOf(letter)]++
	for l.byTime.n > limit {
		l.byTime.from(nil, func(oldest *operations.Letter) bool { l.remove(oldest); return false })
		l.left++
	}
}

// mark adds what says that a letter was written back.
func (l *letters) mark(topic string, r processors.Inbound) {
	l.changed = true
	l.marksOf(topic).Add(r)
}

// forget drops the letters and marks of a partition before an offset, which the topic has lost by age.
func (l *letters) forget(topic string, partition int32, before int64) {
	var lost []*operations.Letter
	l.byTime.from(nil, func(letter *operations.Letter) bool {
		if letter.Partition == partition && letter.Offset < before && operations.LetterTopic(goka.Group(letter.Group)) == topic {
			lost = append(lost, letter)
		}
		return true
	})
	for _, letter := range lost {
		l.remove(letter)
	}
	l.changed = true
	l.marksOf(topic).Forget(partition, before)
}

// notRequeued returns how many letters were not written back.
func (l *letters) notRequeued() int {
	if l.changed {
		l.changed, l.waiting = false, 0
		l.byTime.from(nil, func(letter *operations.Letter) bool {
			if l.marksOf(operations.LetterTopic(goka.Group(letter.Group))).Of(letter) == "" {
				l.waiting++
			}
			return true
		})
	}
	return l.waiting
}

func (l *letters) remove(letter *operations.Letter) {
	l.changed = true
	l.byTime.remove(letter)
	delete(l.byID, letter.ID)
	if at := slices.Index(l.byKey[letter.Key], letter); at >= 0 { // mostly the first: the oldest are dropped first
		l.byKey[letter.Key] = slices.Delete(l.byKey[letter.Key], at, at+1)
	}
	if len(l.byKey[letter.Key]) == 0 {
		delete(l.byKey, letter.Key)
	}
	if l.counts[countOf(letter)]--; l.counts[countOf(letter)] == 0 {
		delete(l.counts, countOf(letter))
	}
}

// judged returns a copy of a letter that says whether it was written back.
func (l *letters) judged(topic string, letter *operations.Letter) operations.Letter {
	copied := *letter
	l.marksOf(topic).Judge(&copied)
	return copied
}
