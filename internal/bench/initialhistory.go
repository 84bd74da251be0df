package main

import (
	"math/rand/v2"
	"strings"
)

// initialHistory is the history that every session has before the warm-up. It has the same length in all sessions.
type initialHistory struct {
	bytes  int // length of the JSON array with its brackets; 0 for none
	corpus string
}

const (
	historyMessageSize = 600 // approximate size of a message in bytes
	minHistory         = 2 * historyMessageSize
)

func newInitialHistory(bytes int) initialHistory {
	words := strings.Fields(`berth harbour north free from until noon the a of vessel pilot tide crane quay which when
		is at for please reserve confirm draught metres arrival departure customs agent manifest container fuel water`)
	rng := rand.New(rand.NewPCG(1, 2)) // the same text in every run
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(' ')
	}
	return initialHistory{bytes: bytes, corpus: b.String()}
}

// elements returns the elements of a session's initial history: messages of the user and the model, alternating.
func (p initialHistory) elements(s *session) []byte {
	if p.bytes == 0 {
		return nil
	}
	want := p.bytes - 2
	out := make([]byte, 0, want)
	for i := 0; len(out) < want; i++ {
		if i > 0 {
			out = append(out, ',')
		}
		left, size := want-len(out), historyMessageSize
		if i%2 == 1 && left < 3*historyMessageSize+2 { // no room for two more
			size = left
		}
		at := (s.number*7919 + i*613) % (len(p.corpus) - 4*historyMessageSize)
		out = appendHistoryMessage(out, s, i, p.corpus[at:at+size-len(appendHistoryMessage(nil, s, i, ""))])
	}
	return out
}

func appendHistoryMessage(dst []byte, s *session, i int, text string) []byte {
	dst = append(dst, `{"session_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","user_id":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, `","role":"`...)
	dst = append(dst, [...]string{"user", "assistant"}[i%2]...)
	dst = append(dst, `","content":"`...)
	dst = append(dst, text...)
	return append(dst, `","timestamp":"2026-06-20T08:14:50.000Z","metadata":null}`...)
}
