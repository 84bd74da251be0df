package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/topics"
)

// mostBytes is the largest record that can be moved, and the limit of the journal and of topics while they are filled.
const mostBytes = 64 << 20

// The keys of the journal.
const (
	keyPlan  = "plan"
	keyPhase = "phase"
	keyCopy  = "copy/" // and a topic: its progress
)

// phase is how far a restore or a repartition is.
type phase string

// The phases. In the first one nothing is lost if the work is undone.
const (
	copies     phase = ""
	moving     phase = "moving"
	done       phase = "done"
	discarding phase = "discarding" // the copies are deleted, and then the journal
	ended      phase = "ended"      // the journal is deleted
)

// journal is a topic that says what a restore or a repartition is about and how far it is. Records and the progress that they mean
// are written in one transaction, so that a call continues exactly where an earlier one was killed. All calls for an agent have
// one transactional ID: a call that begins ends the transaction of an earlier one, which cannot write any more, also if it was only
// paused.
type journal struct {
	*cluster
	name   string
	id     topicID
	values map[string]jsontext.Value
}

// openJournal takes over the work on an agent. If there is no journal and create is false, the journal has no ID.
func openJournal(ctx context.Context, cfg Config, create bool) (*journal, error) {
	name := cfg.Catalog.Archive()
	c, err := connect(cfg,
		kgo.TransactionalID(name), kgo.TransactionTimeout(time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(mostBytes), kgo.ManualFlushing(), kgo.MaxBufferedRecords(2*chunkRecords),
	)
	if err != nil {
		return nil, err
	}
	j := &journal{cluster: c, name: name}
	if err := j.open(ctx, create); err != nil {
		c.client.Close()
		return nil, err
	}
	return j, nil
}

func (j *journal) open(ctx context.Context, create bool) error {
	if err := j.retry(ctx, "take over the transactional ID", j.name, func() error {
		_, _, err := j.client.ProducerID(ctx)
		return err
	}); err != nil {
		return err
	}
	for {
		if err := j.load(ctx, create); err != nil || j.id == (topicID{}) {
			return err
		}
		// An earlier process was killed or paused while it deleted something. This call must not use what that one may still delete.
		phase, err := j.phase()
		switch {
		case err != nil:
			return err
		case phase == ended:
			err = j.deleteTopic(ctx, j.name, j.id)
		case phase == discarding:
			var p *plan
			if p, _, err = j.plan(); err == nil {
				err = j.discard(ctx, p)
			}
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// load reads the journal. It creates one if there is none and create is true.
func (j *journal) load(ctx context.Context, create bool) error {
	j.id, j.values = topicID{}, map[string]jsontext.Value{}
	listed, err := j.topicsOf(ctx, j.name)
	if err != nil {
		return err
	}
	if !listed.Has(j.name) {
		if !create {
			return nil
		}
		if err := j.create(ctx, j.name, 1, j.Replication, map[string]string{
			"cleanup.policy": "compact", "max.message.bytes": fmt.Sprint(mostBytes),
		}); err != nil {
			return err
		}
		if listed, err = j.await(ctx, j.name); err != nil {
			return err
		}
	}
	j.id = listed[j.name].ID
	end := []topic{{Name: j.name, Parts: make([]span, 1)}}
	if err := j.ends(ctx, end); err != nil {
		return err
	}
	return j.read(ctx, j.name, 0, end[0].Parts[0].Start, end[0].Parts[0].End, func(r *kgo.Record) error {
		j.values[string(r.Key)] = r.Value
		return nil
	})
}

// get reads a value. It reports false if there is none.
func (j *journal) get(key string, into any) (bool, error) {
	raw, ok := j.values[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("archive: the journal %s: %w; a newer build has written it: use that build", j.name, err)
	}
	return true, nil
}

// write writes records and then a value of the journal in one transaction. value is called when the records have their offsets. If
// it fails, the call must end: how far the work is, only the journal knows.
func (j *journal) write(ctx context.Context, key string, value func() any, records ...*kgo.Record) (err error) {
	if err := j.client.BeginTransaction(); err != nil {
		return fmt.Errorf("archive: begin a transaction: %w", taken(err))
	}
	if err = j.send(ctx, records...); err == nil {
		var raw []byte
		if raw, err = json.Marshal(value(), json.Deterministic(true)); err == nil {
			j.values[key] = raw
			err = j.send(ctx, &kgo.Record{Topic: j.name, Key: []byte(key), Value: raw})
		}
	}
	if err != nil {
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		return errors.Join(err, j.client.AbortBufferedRecords(ending), j.client.EndTransaction(ending, kgo.TryAbort))
	}
	if err = j.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("archive: commit: %w", taken(err))
	}
	return nil
}

// send writes records and waits until the brokers have them.
func (j *journal) send(ctx context.Context, records ...*kgo.Record) error {
	failed := make([]error, len(records))
	for i, r := range records {
		j.client.Produce(ctx, r, func(_ *kgo.Record, err error) { failed[i] = err })
	}
	for {
		limit, stop := context.WithTimeout(ctx, longWait)
		err := j.client.Flush(limit)
		stop()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("archive: write: %w", context.Cause(ctx))
		}
		listed, err := j.topicsOf(ctx, j.name)
		if err != nil {
			return err
		}
		if listed[j.name].ID != j.id { // the records would be retried for ever
			return fmt.Errorf("%w, and has ended; this one has stopped", ErrTaken)
		}
	}
	for i, err := range failed {
		if err != nil {
			r := records[i]
			if r.Topic == j.name && errors.Is(err, kerr.UnknownTopicID) {
				return fmt.Errorf("%w, and has ended; this one has stopped", ErrTaken)
			}
			return fmt.Errorf("archive: write to %s/%d: %w%s", r.Topic, r.Partition, taken(err), remedy(err, r.Topic))
		}
	}
	return nil
}

// taken adds ErrTaken to an error of a producer whose transactional ID a newer one has.
func taken(err error) error {
	for _, fenced := range []error{kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidProducerIDMapping} {
		if errors.Is(err, fenced) {
			return fmt.Errorf("%w, and this one has stopped: %w", ErrTaken, err)
		}
	}
	return err
}

// phase returns how far the work is.
func (j *journal) phase() (p phase, err error) {
	_, err = j.get(keyPhase, &p)
	return p, err
}

// enter records a phase. Called with the present one, it checks that no other process has taken over: before a step that cannot be
// taken back.
func (j *journal) enter(ctx context.Context, p phase) error {
	if err := j.at("enter " + string(p)); err != nil {
		return err
	}
	return j.write(ctx, keyPhase, func() any { return p })
}

// fenced does a step that cannot be taken back, after a check that no other process has taken over.
func (j *journal) fenced(ctx context.Context, step string, do func() error) error {
	phase, err := j.phase()
	if err != nil {
		return err
	}
	if err := j.at(step); err != nil {
		return err
	}
	if err := j.enter(ctx, phase); err != nil {
		return err
	}
	return do()
}

// end deletes the journal. A process that takes over before the deletion finds that it has ended, and begins another one.
func (j *journal) end(ctx context.Context) error {
	if err := j.enter(ctx, ended); err != nil {
		return err
	}
	if err := j.at("end"); err != nil {
		return err
	}
	return j.deleteTopic(ctx, j.name, j.id)
}

// await waits until the brokers know topics.
func (c *cluster) await(ctx context.Context, name string) (listed kadm.TopicDetails, err error) {
	for {
		if listed, err = c.topicsOf(ctx, name); err != nil || listed.Has(name) && len(listed[name].Partitions) > 0 {
			return listed, err
		}
		if err := pause(ctx, firstWait); err != nil {
			return nil, fmt.Errorf("archive: the topic %s was created and is not visible yet: %w", name, err)
		}
	}
}

// copyName is the name of the topic that has the records of a topic while it is moved.
func copyName(name string) string { return name + topics.ArchiveSuffix }
