-- MySQL and MariaDB: which correction took a key. Primary key: effect_key. Zero rows: nobody.
select correction_id from recon_applied where effect_key = ?
