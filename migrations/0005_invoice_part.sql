-- Payments that each paid a part of one invoice. Their group is the invoice's only where the books have a row
-- on the invoice itself; an invoice that stands here leads to none of its payments. Made from provider_record.
create table invoice_part (
    provider text not null,
    account text not null,
    mode text not null,
    invoice_id text not null,
    payment_id text not null,
    due_minor bigint not null,
    primary key (provider, account, mode, invoice_id, payment_id)
);
create index invoice_part_payment on invoice_part (provider, account, mode, payment_id);

-- A payment stands for itself: what once joined the payments of an invoice is undone.
delete from alias where alias_id >= 'pi_' and alias_id < 'pi`';
