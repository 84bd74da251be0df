package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// Fencer aborts the open transactions of dead members of a group.
//
// It needs the ACLs Describe on the cluster, and Write and Describe on the transactional ids.
type Fencer struct {
	Client  sarama.Client
	Brokers []string
	// Config makes the configuration of the short-lived producer whose initialisation bumps the producer epoch and aborts
	// the open transaction.
	Config func() *sarama.Config
	// Prefix is what the transactional ids of the group begin with; no others are fenced. Own is this member's id and is
	// never fenced.
	Prefix, Own string
}

// Table aborts the transactions that former owners of a table partition have left open on it, instead of waiting for
// their timeout. A member that still has one open on the table of a partition that is assigned to this member is dead or
// a zombie. Table returns the transactional ids that it fenced.
func (f Fencer) Table(topic string, partition int32) ([]string, error) {
	admin, err := f.admin()
	if err != nil {
		return nil, err
	}
	writers, err := admin.DescribeProducers(map[string][]int32{topic: {partition}})
	if err != nil {
		return nil, fmt.Errorf("recovery: fence: producers of %s/%d: %w", topic, partition, err)
	}
	var open []int64
	for _, p := range writers[topic][partition].ActiveProducers {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, p.ProducerID)
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	ids, err := f.ongoing(admin, open)
	if err != nil {
		return nil, err
	}
	return f.end(ids)
}

// Older aborts the transactions of the group that began at least age before now. No live member has one open for longer
// than its drain limit, so an older one belongs to a dead member. The start time is the brokers': if the clocks differ, a
// live member's transaction may be aborted, and that member restarts, or a dead member's transaction is kept until its
// timeout. Older returns the transactional ids that it fenced.
func (f Fencer) Older(age time.Duration, now time.Time) ([]string, error) {
	admin, err := f.admin()
	if err != nil {
		return nil, err
	}
	ids, err := f.ongoing(admin, nil)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	states, err := admin.DescribeTransactions(ids)
	if err != nil {
		return nil, fmt.Errorf("recovery: fence: transactions of %s*: %w", f.Prefix, err)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		s, ok := states[id]
		open := ok && s.ErrorCode == sarama.ErrNoError && s.TransactionState == "Ongoing" && s.TransactionStartTime > 0
		return !open || now.Sub(time.UnixMilli(s.TransactionStartTime)) < age
	})
	return f.end(ids)
}

func (f Fencer) admin() (sarama.TransactionClusterAdmin, error) {
	admin, err := sarama.NewClusterAdminFromClient(f.Client)
	if err != nil {
		return nil, fmt.Errorf("recovery: fence: %w", err)
	}
	transactions, ok := admin.(sarama.TransactionClusterAdmin)
	if !ok {
		return nil, errors.New("recovery: fence: this Sarama cannot describe transactions")
	}
	return transactions, nil
}

// ongoing returns the group's transactional ids with an open transaction, only of the given producers if there are any.
func (f Fencer) ongoing(admin sarama.TransactionClusterAdmin, producers []int64) ([]string, error) {
	listed, err := admin.ListTransactions([]string{"Ongoing"}, producers, -1)
	if err != nil {
		return nil, fmt.Errorf("recovery: fence: transactions of %s*: %w", f.Prefix, err)
	}
	var ids []string
	for _, t := range listed {
		if strings.HasPrefix(t.TransactionalID, f.Prefix) && t.TransactionalID != f.Own {
			ids = append(ids, t.TransactionalID)
		}
	}
	return ids, nil
}

func (f Fencer) end(ids []string) ([]string, error) {
	var fenced []string
	var errs []error
	for _, id := range ids {
		c := f.Config()
		c.Producer.Transaction.ID = id
		p, err := sarama.NewAsyncProducer(f.Brokers, c)
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("recovery: fence %s: %w", id, err))
			continue
		}
		fenced = append(fenced, id)
	}
	return fenced, errors.Join(errs...)
}
