package wiretest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The values of Record.Partition that are not partition numbers.
const (
	// AtHome is the partition of the record's key.
	AtHome int32 = -1
	// Elsewhere is another partition than that of the key, if the topic has several.
	Elsewhere int32 = -2
)

// Record is a record to send, byte for byte.
type Record struct {
	Topic string
	// Key and Value may be nil (Kafka null) or empty.
	Key, Value []byte
	Headers    []kgo.RecordHeader
	// Partition is a number, AtHome (murmur2 of the key; 0 for a null key) or Elsewhere.
	Partition int32
	// Timestamp defaults to the current time.
	Timestamp time.Time
}

// Send writes a record, waits until all in-sync replicas have it, and stores its expected effect in the ledger.
func (d *Driver) Send(ctx context.Context, r Record, expected Sent) (Coord, error) {
	out := &kgo.Record{
		Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp,
		Partition: d.partition(r),
	}
	if err := d.producer.ProduceSync(ctx, out).FirstErr(); err != nil {
		return Coord{}, fmt.Errorf("wiretest: send to %s: %w", r.Topic, err)
	}
	at := coordOf(out)
	d.ledger.Note(at, expected)
	return at, nil
}

// SendAll writes records in one batch, in their order per partition, and waits until all are acknowledged.
func (d *Driver) SendAll(ctx context.Context, expected Sent, rs ...Record) ([]Coord, error) {
	outs := make([]*kgo.Record, len(rs))
	for i, r := range rs {
		outs[i] = &kgo.Record{
			Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp,
			Partition: d.partition(r),
		}
	}
	if err := d.producer.ProduceSync(ctx, outs...).FirstErr(); err != nil {
		return nil, fmt.Errorf("wiretest: send: %w", err)
	}
	ats := make([]Coord, len(outs))
	for i, o := range outs {
		ats[i] = coordOf(o)
		d.ledger.Note(ats[i], expected)
	}
	return ats, nil
}

func (d *Driver) partition(r Record) int32 {
	n := d.partitions[r.Topic]
	if r.Partition >= 0 {
		return r.Partition
	}
	var p int32
	if r.Key != nil {
		p = partitionOf(r.Key, n)
	}
	if r.Partition == Elsewhere {
		p = (p + 1) % n
	}
	return p
}

// Say is a message of a user.
type Say struct {
	Session string
	// User is written as JSON null if it is empty.
	User string
	Text string
	// RequestID, if not empty, is written to the metadata.
	RequestID string
	// Role defaults to "user".
	Role string
	// Time defaults to the current time.
	Time time.Time
}

// Value returns the message as the chat API writes it.
func (s Say) Value() []byte {
	role, at := s.Role, s.Time
	if role == "" {
		role = "user"
	}
	if at.IsZero() {
		at = time.Now()
	}
	metadata := `{"locale":"en-US","client":"web"}`
	if s.RequestID != "" {
		metadata = `{"locale":"en-US","client":"web","request_id":` + quote(s.RequestID) + `}`
	}
	user := "null"
	if s.User != "" {
		user = quote(s.User)
	}
	return []byte(`{"session_id":` + quote(s.Session) + `,"user_id":` + user + `,"role":` + quote(role) +
		`,"content":` + quote(s.Text) + `,"timestamp":` + quote(stamp(at)) + `,"metadata":` + metadata + `}`)
}

// Record returns the message as a record of message-input.
func (d *Driver) Record(s Say) Record {
	return Record{Topic: d.names.MessageInput, Key: []byte(s.Session), Value: s.Value(), Partition: AtHome}
}

// Say sends a message of a user.
func (d *Driver) Say(ctx context.Context, s Say, expected Sent) (Coord, error) {
	return d.Send(ctx, d.Record(s), expected)
}

// Ask sends a message with a plan. The expected ending follows from the plan.
func (d *Driver) Ask(ctx context.Context, session string, p Plan) (Coord, error) {
	return d.Say(ctx, Say{Session: session, User: "user-" + session, Text: p.Text()},
		Sent{Fate: FateTurn, Case: "message", Codes: p.Codes()})
}

// Route writes a reply descriptor; a nil descriptor removes the session's route.
func (d *Driver) Route(ctx context.Context, session string, descriptor []byte) (Coord, error) {
	return d.Send(ctx, Record{
		Topic: d.names.ReplyTo, Key: []byte(session), Value: descriptor, Partition: AtHome,
	}, Sent{Fate: FateExplained, Case: "route"})
}

// Descriptor returns a reply descriptor. An empty request ID is omitted.
func Descriptor(service, token, requestID string) []byte {
	d := `{"callbackService":` + quote(service) + `,"bearerToken":` + quote(token)
	if requestID != "" {
		d += `,"request_id":` + quote(requestID)
	}
	return []byte(d + `,"extra":{"z":1.10,"a":[null]}}`)
}

// Control writes a record of session-control.
func (d *Driver) Control(ctx context.Context, session, action, requestID string) (Coord, error) {
	v := `{"action":` + quote(action)
	if requestID != "" {
		v += `,"request_id":` + quote(requestID)
	}
	return d.Send(ctx, Record{
		Topic: d.names.SessionControl, Key: []byte(session), Value: []byte(v + `,"reason":"test"}`), Partition: AtHome,
	}, Sent{Fate: FateExplained, Case: action})
}

// errorHeaders returns the headers of a dead letter as the Python SDK writes them.
func errorHeaders(r *kgo.Record, reason string) []kgo.RecordHeader {
	return []kgo.RecordHeader{
		{Key: headerReason, Value: []byte(reason)},
		{Key: headerTopic, Value: []byte(r.Topic)},
		{Key: headerPartition, Value: []byte(strconv.Itoa(int(r.Partition)))},
		{Key: headerOffset, Value: []byte(strconv.FormatInt(r.Offset, 10))},
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
