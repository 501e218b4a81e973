package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// incidentAgents are the agents of the session demo-incident, whose run has
// failed: refunds, which pays customers back, and its sub-agent ledger, which
// knows the payments. Something is wrong between the two.
func incidentAgents(opts *scripted.Options) []agentloop.Agent {
	return []agentloop.Agent{
		{
			Name:         "refunds",
			Description:  "Pays a customer back, and has something wrong with it: see demo-incident.",
			SystemPrompt: "You handle refunds. Ask the ledger which payment is meant, open a case, then refund it. Amounts are in euros.",
			Model:        fromConversation{opts, refundsTurn},
			Tools:        []agentloop.Tool{openCaseTool(), refundTool()},
			SubAgents:    []agentloop.SubAgent{{Agent: "ledger"}},
			InitialState: json.RawMessage(`{"case":null}`),
			MaxSteps:     5,
		},
		{
			Name:         "ledger",
			Description:  "Finds a payment.",
			SystemPrompt: "You know the payments. Answer with the payment, its amount and its currency.",
			Model:        fromConversation{opts, ledgerTurn},
			Tools:        []agentloop.Tool{listPaymentsTool()},
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"payment":{"type":"string"},"amount":{"type":"number"},"currency":{"type":"string"}},"required":["payment","amount","currency"]}`),
		},
	}
}

// fromConversation is a scripted model whose next turn depends on what its
// tools have returned: a fork with a corrected result continues differently.
type fromConversation struct {
	opts *scripted.Options
	next func([]model.Message) scripted.Turn
}

// Name implements [model.Named].
func (m fromConversation) Name() string { return m.opts.Name }

// Provider implements [model.Provided].
func (fromConversation) Provider() string { return "scripted" }

// Generate implements [model.Model].
func (m fromConversation) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	n := 0 // the position in the script determines the ids of its calls
	for _, message := range slices.Backward(req.Messages) {
		if message.Role == model.RoleUser {
			break
		}
		if message.Role == model.RoleAssistant {
			n++
		}
	}
	return scripted.New(slices.Repeat([]scripted.Turn{m.next(req.Messages)}, n+1), m.opts).Generate(ctx, req, emit)
}

// resultOf returns the last result of a tool since the user has spoken.
func resultOf(messages []model.Message, tool string) (m model.Message, found bool) {
	for _, m := range slices.Backward(messages) {
		switch {
		case m.Role == model.RoleUser:
			return m, false
		case m.Role == model.RoleTool && m.ToolName == tool:
			return m, true
		}
	}
	return m, false
}

// call is a turn that ends in one tool call.
func call(reasoning, text, tool string, args any, prompt int64) scripted.Turn {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // of the values in this file
	}
	return scripted.Turn{
		Reasoning: reasoning, Text: text, ToolCalls: []scripted.Call{{Name: tool, Arguments: raw}},
		Usage: fact.TokenUsage{Prompt: prompt, Completion: 40 + int64(len(text)/4)},
	}
}

func say(text string, prompt int64) scripted.Turn {
	return scripted.Turn{Text: text, Usage: fact.TokenUsage{Prompt: prompt, Completion: int64(len(text) / 4)}}
}

func refundsTurn(messages []model.Message) scripted.Turn {
	const ledger = agentloop.SubAgentPrefix + "ledger"
	found, asked := resultOf(messages, ledger)
	if !asked {
		return call("The customer speaks of two charges. I must not promise anything before the ledger has confirmed it.",
			"I ask the ledger for the payments of this booking.", ledger,
			map[string]any{"message": "Booking B-2041 was charged twice. Which payment is the duplicate, and how much is it?"}, 212)
	}
	var duplicate struct {
		Payment string
		Amount  float64
	}
	if found.Failed || json.Unmarshal([]byte(found.Content), &duplicate) != nil {
		return say("The ledger can't tell which payment is the duplicate, so I leave this to a colleague.", 260)
	}
	order := refundOrder{Payment: duplicate.Payment, Euros: duplicate.Amount}
	if _, open := resultOf(messages, "open_case"); !open {
		return call("", "The duplicate is "+order.Payment+". I open a case for it.", "open_case", order, 318)
	}
	const refund = "refund"
	last, tried := resultOf(messages, refund)
	if !tried {
		return call("", "The case is open, so the second charge goes back now. The money should be on the card within three working days. "+
			"A colleague has to approve it first.", refund, order, 402)
	}
	var outcome refundOutcome
	if json.Unmarshal([]byte(last.Content), &outcome) == nil && outcome.Status == "refunded" {
		return say(fmt.Sprintf("Done: %.2f euros are on their way back to the card. Please excuse the double charge.", order.Euros), 533)
	}
	if !last.Failed && outcome.Status == "declined" {
		return call("Declined. Payment services are busy at this hour; it may work now.",
			"The payment service has declined the refund. I try it again.", refund, order, 488)
	}
	return say("The refund can't be made: "+last.Content+". I leave the case to a colleague.", 540)
}

func ledgerTurn(messages []model.Message) scripted.Turn {
	found, asked := resultOf(messages, "list_payments")
	if !asked {
		return call("", "I look up the payments of B-2041.", "list_payments", map[string]any{"booking": "B-2041"}, 96)
	}
	var list payments
	if found.Failed || json.Unmarshal([]byte(found.Content), &list) != nil || len(list.Payments) == 0 {
		return call("", "", agentloop.FinishTool, map[string]any{"payment": "none", "amount": 0, "currency": "EUR"}, 150)
	}
	duplicate := list.Payments[len(list.Payments)-1]
	return call(fmt.Sprintf("%d payments of %d each, eleven seconds apart. The later one, %s, is the duplicate.", len(list.Payments), duplicate.AmountCents, duplicate.ID),
		"", agentloop.FinishTool, map[string]any{"payment": duplicate.ID, "amount": duplicate.AmountCents, "currency": duplicate.Currency}, 171)
}

type payment struct {
	ID          string `json:"id"`
	AmountCents int    `json:"amountCents"`
	Currency    string `json:"currency"`
	At          string `json:"at"`
}

type payments struct {
	Payments []payment `json:"payments"`
}

func listPaymentsTool() agentloop.Tool {
	type input struct {
		Booking string `json:"booking" jsonschema:"the booking's number"`
	}
	return agentloop.NewTool("list_payments", "Payments of a booking.",
		func(_ context.Context, _ *agentloop.Call, in input) (payments, error) {
			if in.Booking != "B-2041" {
				return payments{}, fmt.Errorf("there is no booking %s", in.Booking)
			}
			return payments{[]payment{
				{ID: "pay_881", AmountCents: paidCents, Currency: "EUR", At: "09:14:02"},
				{ID: "pay_882", AmountCents: paidCents, Currency: "EUR", At: "09:14:13"},
			}}, nil
		})
}

// paidCents is what each of the payments was.
const paidCents = 4250

// refundOrder is what open_case and refund take.
type refundOrder struct {
	Payment string  `json:"payment" jsonschema:"the payment's id"`
	Euros   float64 `json:"euros" jsonschema:"the amount in euros"`
}

// refundCase is in the custom state.
type refundCase struct {
	Number   string  `json:"number"`
	Payment  string  `json:"payment"`
	Euros    float64 `json:"euros"`
	Status   string  `json:"status"`
	Approved bool    `json:"approved"`
	Declined int     `json:"declined"`
}

type refundState struct {
	Case *refundCase `json:"case"`
}

func openCaseTool() agentloop.Tool {
	type opened struct {
		Case string `json:"case"`
	}
	return agentloop.NewTool("open_case", "Opens a refund case.",
		func(ctx context.Context, c *agentloop.Call, in refundOrder) (opened, error) {
			const number = "C-17"
			if err := c.Emit(ctx, "case_opened", map[string]any{"case": number}); err != nil {
				return opened{}, err
			}
			return opened{number}, agentloop.UpdateState(c, func(s *refundState) error {
				s.Case = &refundCase{Number: number, Payment: in.Payment, Euros: in.Euros, Status: "open"}
				return nil
			})
		})
}

type refundOutcome struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// maxDeclined is after how many declined refunds a payment is locked.
const maxDeclined = 2

// refundTool asks for approval until a person has given it for the case.
func refundTool() agentloop.Tool {
	tool := agentloop.NewTool("refund", "Pays a payment back, in full or in part.",
		func(_ context.Context, c *agentloop.Call, in refundOrder) (refundOutcome, error) {
			var s refundState
			if err := c.GetState(&s); err != nil || s.Case == nil {
				return refundOutcome{}, errors.New("there is no open case")
			}
			if s.Case.Declined >= maxDeclined {
				return refundOutcome{}, fmt.Errorf("payment %s is locked after %d declined refunds", in.Payment, maxDeclined)
			}
			out := refundOutcome{Status: "refunded"}
			if in.Euros*100 > paidCents {
				out = refundOutcome{"declined", fmt.Sprintf("%.2f EUR exceeds the captured amount of %s, which is %.2f EUR", in.Euros, in.Payment, paidCents/100.)}
			}
			return out, agentloop.UpdateState(c, func(s *refundState) error {
				if s.Case == nil {
					return errors.New("there is no open case")
				}
				s.Case.Approved, s.Case.Status = true, out.Status
				if out.Status == "declined" {
					s.Case.Declined++
				}
				return nil
			})
		})
	tool.RequireApproval = func(_ context.Context, c *agentloop.Call, _ json.RawMessage) (bool, error) {
		var s refundState
		err := c.GetState(&s)
		return s.Case == nil || !s.Case.Approved, err
	}
	return tool
}
