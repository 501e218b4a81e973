// Command openai uses the official OpenAI SDK for Go with the daemon at the address that it is
// given, whose agent brain does what world.mjs says. TestOpenAI runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := openai.NewClient(option.WithBaseURL(os.Args[1]+"/v1"), option.WithAPIKey("any"), option.WithMaxRetries(0))
	for _, test := range []struct {
		name string
		run  func(context.Context, openai.Client) error
	}{
		{"create, retrieve, delete", create}, {"stream and continue", stream}, {"function tools", functions}, {"conversations", conversation}, {"background and cancel", background},
		{"a cut after each event", cuts}, {"errors", refusals},
	} {
		if err := test.run(ctx, client); err != nil {
			fmt.Printf("FAIL  Go: %s: %v\n", test.name, err)
			os.Exit(1)
		}
		fmt.Println("ok    Go: " + test.name)
	}
}

func params(input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "brain", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(input)}}
}

func want[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, not %v", what, got, want)
	}
	return nil
}

func create(ctx context.Context, c openai.Client) error {
	made, err := c.Responses.New(ctx, params("hello"))
	if err != nil {
		return err
	}
	again, err := c.Responses.Get(ctx, made.ID, responses.ResponseGetParams{})
	if err != nil {
		return err
	}
	inputs, err := c.Responses.InputItems.List(ctx, made.ID, responses.InputItemListParams{})
	if err != nil {
		return err
	}
	if err := c.Responses.Delete(ctx, made.ID); err != nil {
		return err
	}
	_, err = c.Responses.Get(ctx, made.ID, responses.ResponseGetParams{})
	var refused *openai.Error
	if !errors.As(err, &refused) || refused.StatusCode != 404 || refused.Code != "response_not_found" {
		return fmt.Errorf("a deleted response: %v", err)
	}
	return errors.Join(
		want("text", made.OutputText(), "Hello to you."), want("retrieved", again.RawJSON(), made.RawJSON()), want("inputs", len(inputs.Data), 1),
		want("reasoning", made.Output[0].Summary[0].Text, "They greet me."), want("reasoning tokens", made.Usage.OutputTokensDetails.ReasoningTokens, 2),
	)
}

func stream(ctx context.Context, c openai.Client) error {
	var text strings.Builder
	var id string
	first := c.Responses.NewStreaming(ctx, params("hello"))
	for first.Next() {
		e := first.Current()
		text.WriteString(e.Delta)
		if e.Type == "response.created" {
			id = e.Response.ID
		}
	}
	if err := first.Err(); err != nil {
		return err
	}
	rest := c.Responses.GetStreaming(ctx, id, responses.ResponseGetParams{StartingAfter: openai.Int(2)})
	next := int64(3)
	for rest.Next() {
		if err := want("sequence number", rest.Current().SequenceNumber, next); err != nil {
			return err
		}
		next++
	}
	return errors.Join(rest.Err(), want("reaches the text", strings.Contains(text.String(), "Hello to you."), true), want("continues", next > 4, true))
}

func functions(ctx context.Context, c openai.Client) error {
	p := params("call get_weather")
	p.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", map[string]any{"type": "object"}, false)}
	first, err := c.Responses.New(ctx, p)
	if err != nil {
		return err
	}
	for _, item := range first.Output {
		if item.Type != "function_call" {
			continue
		}
		output := responses.ResponseInputItemParamOfFunctionCallOutput("fog").OfFunctionCallOutput
		output.CallID = openai.String(item.CallID)
		second, err := c.Responses.New(ctx, responses.ResponseNewParams{
			Model: "brain", PreviousResponseID: openai.String(first.ID),
			Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
				{OfFunctionCallOutput: output},
			}},
		})
		if err != nil {
			return err
		}
		return want("answer", strings.Contains(second.OutputText(), "fog"), true)
	}
	return errors.New("no call")
}

func conversation(ctx context.Context, c openai.Client) error {
	made, err := c.Conversations.New(ctx, conversations.ConversationNewParams{})
	if err != nil {
		return err
	}
	p := params("hello")
	p.Conversation = responses.ResponseNewParamsConversationUnion{OfString: openai.String(made.ID)}
	if _, err := c.Responses.New(ctx, p); err != nil {
		return err
	}
	n := 0
	items := c.Conversations.Items.ListAutoPaging(ctx, made.ID, conversations.ItemListParams{Limit: openai.Int(2)})
	for items.Next() {
		n++
	}
	if err := items.Err(); err != nil {
		return err
	}
	_, err = c.Conversations.Delete(ctx, made.ID)
	return errors.Join(err, want("items", n, 3))
}

func background(ctx context.Context, c openai.Client) error {
	p := params("hold go")
	p.Background = openai.Bool(true)
	made, err := c.Responses.New(ctx, p)
	if err != nil {
		return err
	}
	stopped, err := c.Responses.Cancel(ctx, made.ID)
	if err != nil {
		return err
	}
	return want("status", stopped.Status, responses.ResponseStatusCancelled)
}

// cuts follows a response in the background with a new request for each event, and compares
// what it has with the whole.
func cuts(ctx context.Context, c openai.Client) error {
	p := params("hello")
	p.Background = openai.Bool(true)
	made, err := c.Responses.New(ctx, p)
	if err != nil {
		return err
	}
	var events []string
	for ended := false; !ended; {
		query := responses.ResponseGetParams{}
		if len(events) > 0 {
			query.StartingAfter = openai.Int(int64(len(events) - 1))
		}
		stream := c.Responses.GetStreaming(ctx, made.ID, query)
		if !stream.Next() {
			return errors.Join(stream.Err(), fmt.Errorf("nothing after event %d", len(events)-1))
		}
		events, ended = append(events, stream.Current().RawJSON()), stream.Current().Type == "response.completed"
		if err := stream.Close(); err != nil {
			return err
		}
	}
	whole := c.Responses.GetStreaming(ctx, made.ID, responses.ResponseGetParams{})
	for i := 0; whole.Next(); i++ {
		if i == len(events) {
			return errors.New("there are more events")
		}
		if err := want(fmt.Sprintf("event %d", i), events[i], whole.Current().RawJSON()); err != nil {
			return err
		}
	}
	return whole.Err()
}

func refusals(ctx context.Context, c openai.Client) error {
	nobody, missing := params("x"), params("x")
	nobody.Model = "nobody"
	missing.PreviousResponseID = openai.String("resp_none_none")
	for _, test := range []struct {
		params responses.ResponseNewParams
		status int
		code   string
		param  string
	}{
		{nobody, 404, "model_not_found", "model"}, {missing, 400, "previous_response_not_found", "previous_response_id"},
		{responses.ResponseNewParams{Model: "brain"}, 400, "missing_required_parameter", "input"},
	} {
		_, err := c.Responses.New(ctx, test.params)
		var refused *openai.Error
		if !errors.As(err, &refused) {
			return fmt.Errorf("%s: %v", test.code, err)
		}
		if err := errors.Join(
			want("status", refused.StatusCode, test.status), want("code", refused.Code, test.code), want("param", refused.Param, test.param),
			want("type", refused.Type, "invalid_request_error"), want("has a message", refused.Message != "", true),
		); err != nil {
			return err
		}
	}
	return nil
}
