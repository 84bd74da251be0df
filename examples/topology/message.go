package main

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// question returns a message for an agent. The agent answers a request once, and the output has its ID.
func question(session string, user *string, request, text string) topics.Message {
	role, now := "user", topics.Timestamp(time.Now())
	return topics.Message{
		SessionID: &session, UserID: user, Role: &role, Content: encode(text), Timestamp: &now,
		Metadata: encode(map[string]string{"request_id": request}),
	}
}

// requestOf returns the request ID of a message, or "".
func requestOf(m topics.Message) string {
	id, _ := topics.Lookup(m.Metadata, "request_id")
	return topics.Text(id)
}

// encode encodes strings, numbers, and structs and maps of them, which cannot fail. Invalid UTF-8 becomes U+FFFD.
func encode(v any) topics.Raw {
	raw, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err)
	}
	return raw
}

// is reports whether a message has the role.
func is(m topics.Message, role string) bool { return text(m.Role) == role }

// text returns a string of a record, "" if it has none.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
