package processors

import (
	"slices"
	"strconv"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// defaultRecordBytes is the size limit of a record where none is configured.
	defaultRecordBytes = kafka.MaxMessageBytes
	// What Sarama adds to a record and to each of its headers, at most, when it compares it with the limit.
	recordOverhead = 64
	headerOverhead = 16
	// truncatedReserve is kept for the header that says that something was cut.
	truncatedReserve = 64
)

// errorHeaders are the headers that only a dead letter has.
var errorHeaders = []string{
	topics.HeaderErrorReason, topics.HeaderErrorSourceTopic, topics.HeaderErrorSourcePartition,
	topics.HeaderErrorSourceOffset, topics.HeaderErrorGroup, topics.HeaderErrorTruncated,
}

// shrink cuts a dead letter until it fits the limit, which Sarama applies before compression: the value first, then the
// record's own headers, then the key. What was cut leaves the size of the value in error.truncated. headers are changed
// in place.
func shrink(key string, value []byte, headers goka.Headers, limit int) (string, []byte) {
	if recordBytes(key, value, headers) <= limit {
		return key, value
	}
	headers[topics.HeaderErrorTruncated] = strconv.AppendInt(nil, int64(len(value)), 10)
	excess := func() int { return max(0, recordBytes(key, value, headers)+truncatedReserve-limit) }
	value = value[:len(value)-min(len(value), excess())]
	if excess() > 0 {
		for name := range headers {
			if !slices.Contains(errorHeaders, name) {
				delete(headers, name)
			}
		}
	}
	return key[:len(key)-min(len(key), excess())], value
}

// recordBytes is the size of a record as Sarama counts it, or a little more.
func recordBytes(key string, value []byte, headers goka.Headers) int {
	return recordOverhead + len(key) + len(value) + headersBytes(headers)
}

func headersBytes(headers goka.Headers) (size int) {
	for name, v := range headers {
		size += headerBytes(name, len(v))
	}
	return size
}

func headerBytes(name string, value int) int { return len(name) + value + headerOverhead }
