package processors

import (
	"slices"
	"strconv"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// defaultRecordBytes is the default size limit of a record.
	defaultRecordBytes = kafka.MaxMessageBytes
	// The most bytes that Sarama adds for a record and for each of its headers when it checks the limit.
	recordOverhead = 64
	headerOverhead = 16
	// truncatedReserve is reserved for the header error.truncated.
	truncatedReserve = 64
)

// errorHeaders are the headers that only a dead letter has.
var errorHeaders = []string{
	topics.HeaderErrorReason, topics.HeaderErrorSourceTopic, topics.HeaderErrorSourcePartition,
	topics.HeaderErrorSourceOffset, topics.HeaderErrorGroup, topics.HeaderErrorTruncated,
	topics.HeaderErrorRequeued,
}

// shrink truncates a dead letter to the limit, which Sarama applies before compression: the value first, then it drops
// the record's own headers, then it truncates the key. If anything was truncated, the header error.truncated has the
// original size of the value. headers are modified in place.
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

// recordBytes is at least the size of a record as Sarama counts it.
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
