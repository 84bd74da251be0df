package main

import (
	"math/rand/v2"
	"strings"
)

// past is the conversation that a session had before the run, of one length for all sessions.
type past struct {
	bytes  int // of the array, brackets included; 0: none
	corpus string
}

const (
	pastMessage = 600 // bytes of one message, about
	smallPast   = 2 * pastMessage
)

func newPast(bytes int) past {
	words := strings.Fields(`berth harbour north free from until noon the a of vessel pilot tide crane quay which when
		is at for please reserve confirm draught metres arrival departure customs agent manifest container fuel water`)
	rng := rand.New(rand.NewPCG(1, 2)) // the same text in every run
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(' ')
	}
	return past{bytes: bytes, corpus: b.String()}
}

// of writes the elements of a session's past: a user's and the model's messages by turns.
func (p past) of(s *session) []byte {
	if p.bytes == 0 {
		return nil
	}
	want := p.bytes - 2
	out := make([]byte, 0, want)
	for i := 0; len(out) < want; i++ {
		if i > 0 {
			out = append(out, ',')
		}
		left, size := want-len(out), pastMessage
		if i%2 == 1 && left < 3*pastMessage+2 { // no room for two more
			size = left
		}
		at := (s.number*7919 + i*613) % (len(p.corpus) - 4*pastMessage)
		out = appendPast(out, s, i, p.corpus[at:at+size-len(appendPast(nil, s, i, ""))])
	}
	return out
}

func appendPast(dst []byte, s *session, i int, text string) []byte {
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
