package cut

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"
)

// The metadata of a committed offset is "turntable/1" and fields of the form name=value, separated by spaces. Readers
// skip fields that they do not know. Kafka Streams writes base64 and Kafka's own tools write nothing, so that neither
// can be mistaken for it.
const (
	listingFormat = "turntable/1"
	inputsField   = "inputs"
	topicField    = "topic"
	countField    = "partitions"
	epochField    = "epoch"
	attemptsField = "attempts"
)

// The size of a listing. A broker rejects metadata of more than offset.metadata.max.bytes, 4096 by default.
const (
	hashLength   = 6   // characters of base64: 36 bits distinguish the inputs of one group
	mostOfInputs = 500 // 3,500 characters; inputs beyond it are not listed
)

// Listing makes the metadata that a group commits with each offset: the group's inputs, the number of partitions that its
// rows are spread over, and the ID of the offset's topic. A broker drops the offsets of a topic that is deleted. Without a
// list, an input that was deleted and recreated could not be told from one that the group never read. A nil Listing makes
// no metadata. It is safe for concurrent use.
type Listing struct {
	text     string
	ids      map[string]string
	epochs   *Epochs
	attempts *Attempts
	refused  *atomic.Bool
	log      *zap.Logger
}

// NewListing returns the listing of a group's inputs. ids has their topic IDs, except of topics without an ID. partitions
// is 0 for a group without a table; epochs and attempts may be nil. refused outlives the listing: it is set when the broker
// rejects metadata of this size, and offsets are then committed without metadata.
func NewListing(inputs []string, ids map[string]string, partitions int, epochs *Epochs, attempts *Attempts,
	refused *atomic.Bool, log *zap.Logger,
) *Listing {
	hashes := make([]string, len(inputs))
	for i, in := range inputs {
		hashes[i] = hashOf(in)
	}
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	hashes = hashes[:min(len(hashes), mostOfInputs)]
	text := listingFormat + " " + inputsField + "=" + strings.Join(hashes, ",")
	if partitions > 0 {
		text += " " + countField + "=" + strconv.Itoa(partitions)
	}
	return &Listing{text: text, ids: ids, epochs: epochs, attempts: attempts, refused: refused, log: log}
}

func hashOf(topic string) string {
	sum := sha256.Sum256([]byte(topic))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:hashLength]
}

// Metadata returns the metadata to commit with an offset of a partition.
func (l *Listing) Metadata(p Partition, offset int64) string {
	if l == nil || l.refused.Load() {
		return ""
	}
	text := l.of(p.Topic)
	if epoch, ok := l.epochs.Of(p); ok {
		text += " " + epochField + "=" + strconv.Itoa(int(epoch))
	}
	if n := l.attempts.Of(p, Attempt{Offset: offset}); n > 0 {
		text += " " + attemptsField + "=" + strconv.Itoa(n)
	}
	return text
}

// of returns the metadata of a topic's offsets, without the fields that differ between its partitions.
func (l *Listing) of(topic string) string {
	if id := l.ids[topic]; id != "" {
		return l.text + " " + topicField + "=" + id
	}
	return l.text
}

// Current reports whether metadata that was committed with an offset equals what would be committed now; the leader epoch
// and the attempts are not compared.
func (l *Listing) Current(topic, metadata string) bool {
	if l.refused.Load() {
		return metadata == ""
	}
	text := l.of(topic)
	return metadata == text || strings.HasPrefix(metadata, text+" "+epochField+"=") ||
		strings.HasPrefix(metadata, text+" "+attemptsField+"=")
}

// refuse omits metadata from now on and logs a warning once.
func (l *Listing) refuse() {
	if l != nil && !l.refused.Swap(true) {
		l.log.Warn("offsets are committed without the list of inputs: raise offset.metadata.max.bytes on the brokers, " +
			"otherwise an input that is deleted and recreated while the group is down starts at its newest offset")
	}
}

// Listed is the parsed metadata of a committed offset. The zero Listed lists nothing.
type Listed struct {
	inputs     map[string]bool // by hash
	topic      string
	partitions int
	epoch      int32 // -1: not known
	attempts   int
}

// ParseListed reads the metadata of a committed offset. It reports false for metadata that is not a Listing's.
func ParseListed(metadata string) (Listed, bool) {
	fields := strings.Fields(metadata)
	if len(fields) == 0 || fields[0] != listingFormat {
		return Listed{}, false
	}
	l := Listed{inputs: map[string]bool{}, epoch: -1}
	for _, f := range fields[1:] {
		switch name, value, _ := strings.Cut(f, "="); name {
		case inputsField:
			for hash := range strings.SplitSeq(value, ",") {
				l.inputs[hash] = true
			}
		case topicField:
			l.topic = value
		case countField:
			l.partitions, _ = strconv.Atoi(value)
		case epochField:
			if epoch, err := strconv.ParseInt(value, 10, 32); err == nil {
				l.epoch = int32(epoch)
			}
		case attemptsField:
			l.attempts, _ = strconv.Atoi(value)
		}
	}
	return l, true
}

// Has reports whether a topic was an input of the group when the offset was committed.
func (l Listed) Has(topic string) bool { return l.inputs[hashOf(topic)] }

// Partitions returns the number of partitions that the group's rows were spread over, or 0 if it is not known.
func (l Listed) Partitions() int { return l.partitions }

// Epoch returns the leader epoch under which the records before the offset were read, or an older one; false if it is not
// known.
func (l Listed) Epoch() (int32, bool) { return l.epoch, l.epoch >= 0 }

// Attempts returns how often the handler of the record at the offset had failed when the offset was committed.
func (l Listed) Attempts() int { return l.attempts }

// OfAnother reports whether the offset was committed for another topic of the same name as the one with this ID: the
// topic was deleted and recreated. It reports false if one of the IDs is not known.
func (l Listed) OfAnother(id string) bool { return l.topic != "" && id != "" && l.topic != id }
