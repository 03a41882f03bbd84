// Drives analytics-go as its application would: one JSON order in the first argument, one JSON outcome on stdout.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/segmentio/analytics-go/v3"
)

type order struct {
	Host     string    `json:"host"`
	WriteKey string    `json:"writeKey"`
	Kind     string    `json:"kind"`
	UserId   string    `json:"userId"`
	NewId    string    `json:"newId"`
	At       time.Time `json:"at"`
	Count    int       `json:"count"`
}

// tally is the client's callback: it knows when every call has been answered.
type tally struct {
	answered sync.WaitGroup
	lock     sync.Mutex
	errors   []string
}

func (t *tally) Success(analytics.Message) { t.answered.Done() }

func (t *tally) Failure(_ analytics.Message, err error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.errors = append(t.errors, err.Error())
	t.answered.Done()
}

func main() {
	var given order
	if err := json.Unmarshal([]byte(os.Args[1]), &given); err != nil {
		log.Fatal(err)
	}
	calls := everyCall(given)
	batchSize := len(calls)
	if given.Kind == "many" {
		calls = manyCalls(given)
		batchSize = 1
	}
	seen := &tally{errors: []string{}}
	client, err := analytics.NewWithConfig(given.WriteKey, analytics.Config{
		Endpoint:  given.Host,
		BatchSize: batchSize,
		Interval:  50 * time.Millisecond,
		Callback:  seen,
		Logger:    analytics.StdLogger(log.New(io.Discard, "", 0)),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range calls {
		seen.answered.Add(1)
		if err := client.Enqueue(call); err != nil {
			log.Fatal(err)
		}
	}
	// Close drops what is waiting for its next try.
	seen.answered.Wait()
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	outcome, err := json.Marshal(map[string]any{"sent": len(calls), "errors": seen.errors})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(outcome))
}

func everyCall(given order) []analytics.Message {
	user, at := given.UserId, given.At
	return []analytics.Message{
		analytics.Identify{UserId: user, Timestamp: at, Traits: analytics.NewTraits().SetEmail("a@example.org").Set("plan", "pro")},
		analytics.Track{UserId: user, Timestamp: at, Event: "Order Completed", Properties: analytics.NewProperties().SetPrice(9.5)},
		analytics.Page{UserId: user, Timestamp: at, Name: "Home", Properties: analytics.NewProperties().SetURL("https://example.org/")},
		analytics.Screen{UserId: user, Timestamp: at, Name: "Cart", Context: &analytics.Context{
			Device: analytics.DeviceInfo{Model: "Pixel 9", Type: "android"},
			OS:     analytics.OSInfo{Name: "Android", Version: "16"},
			App:    analytics.AppInfo{Build: "12", Name: "Shop", Version: "3.4"},
		}},
		analytics.Group{UserId: user, Timestamp: at, GroupId: "g1", Traits: analytics.NewTraits().Set("total seats", 5)},
		analytics.Alias{UserId: given.NewId, Timestamp: at, PreviousId: user},
	}
}

func manyCalls(given order) []analytics.Message {
	calls := make([]analytics.Message, given.Count)
	for i := range calls {
		calls[i] = analytics.Track{UserId: given.UserId, Event: "Counted", Properties: analytics.NewProperties().Set("number", i)}
	}
	return calls
}
